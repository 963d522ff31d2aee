"""slurm_score/watch.py: a file that is read again when it changes; the last good reading stays."""

import logging
import os
from pathlib import Path

import pytest

from slurm_score.errors import PolicyError, SnapshotError
from slurm_score.policy import Mode
from slurm_score.watch import Watched, read_policy


class Reader:
    """Reads a text and counts how often; a text that says "bad" can't be read."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, path: Path) -> str:
        """Return the text of a file."""
        self.times += 1
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SnapshotError(f"{path.name}: {error.strerror}") from error
        if text == "bad":
            raise SnapshotError(f"{path.name}: bad")
        return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a first text."""
    path = tmp_path / "file"
    path.write_text("first", encoding="utf-8")
    return path


def put(path: Path, text: str) -> None:
    """Replace a file as an editor does: another file under the same name."""
    new = path.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def test_file_is_read_once_while_it_stays_the_same(file: Path) -> None:
    """Every submission asks; only a change costs a reading."""
    reader = Reader()
    watched = Watched(file, reader)
    assert [watched.current() for _ in range(3)] == ["first"] * 3
    assert reader.times == 1


def test_changed_file_is_read_again(file: Path) -> None:
    """No restart is needed, whatever way the file changed."""
    watched = Watched(file, Reader())
    assert watched.current() == "first"
    put(file, "other")
    assert watched.current() == "other"
    file.write_text("longer text", encoding="utf-8")
    assert watched.current() == "longer text"


def test_change_of_the_same_length_and_time_is_seen(file: Path) -> None:
    """The inode is part of the stamp: a copy with its old time stamp is another file."""
    watched = Watched(file, Reader())
    watched.current()
    before = file.stat()
    put(file, "twice")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watched.current() == "twice"


def test_broken_edit_keeps_the_former_and_says_so(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was last read well stays in force; the log has it once, `error` as long as it lasts."""
    watched = Watched(file, Reader())
    watched.current()
    put(file, "bad")
    with caplog.at_level(logging.ERROR):
        assert [watched.current() for _ in range(3)] == ["first"] * 3
    assert watched.error == "file: bad"
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} is not used, the one before stays in force: file: bad"
    ]


def test_repaired_file_is_in_force_again(file: Path) -> None:
    """And the error is forgotten."""
    watched = Watched(file, Reader())
    watched.current()
    put(file, "bad")
    watched.current()
    put(file, "good")
    assert (watched.current(), watched.error) == ("good", "")


def test_deleted_file_keeps_the_former(file: Path) -> None:
    """An editor that deletes before it writes changes nothing."""
    watched = Watched(file, Reader())
    watched.current()
    file.unlink()
    assert (watched.current(), watched.error) == ("first", "file: No such file or directory")
    put(file, "back")
    assert (watched.current(), watched.error) == ("back", "")


def test_first_failure_raises_until_it_is_repaired(file: Path) -> None:
    """There is nothing to fall back on; each call tries again."""
    file.write_text("bad", encoding="utf-8")
    reader = Reader()
    watched = Watched(file, reader)
    for _ in range(2):
        with pytest.raises(SnapshotError, match="file: bad"):
            watched.current()
    assert reader.times == 2
    put(file, "good")
    assert watched.current() == "good"


def test_missing_file_raises_at_first() -> None:
    """The same as a broken one."""
    with pytest.raises(SnapshotError, match="nowhere: No such file or directory"):
        Watched(Path("nowhere"), Reader()).current()


def test_policy_file_is_read_with_its_name(tmp_path: Path) -> None:
    """A problem names the file and the line."""
    path = tmp_path / "policy.yaml"
    path.write_text("mode: enforce\n", encoding="utf-8")
    assert read_policy(path).mode is Mode.ENFORCE
    path.write_text("mode: observe\nmoed: enforce\n", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"policy.yaml:2: moed: unknown setting, did you mean 'mode'\?"):
        read_policy(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "can't read the policy: No such file or directory"),
        (b"mode: \xff\n", "not UTF-8 text at byte 6"),
    ],
)
def test_unreadable_policy_file_is_a_policy_error(tmp_path: Path, content: bytes | None, what: str) -> None:
    """Missing and not UTF-8 are problems of the policy like any other."""
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        read_policy(path)
    assert str(caught.value) == f"{path}: {what}"
