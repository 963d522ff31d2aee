"""slurm_score/hookfile.py and `slurm-score install-hook`: what is written, kept and refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slurm_score import hookfile
from slurm_score.cli import main
from slurm_score.cli.install_hook import choose, outlook, refuse_what_fails
from slurm_score.errors import SlurmScoreError
from slurm_score.hookfile import Installed, install, is_ours, lines_to_add, mentions_us, shipped
from slurm_score.model import SlurmConfig

NOW = 1_700_000_000.7
ENDING = ".old-20231114T221320Z"
SITE = b"function slurm_job_submit() end function slurm_job_modify() end\n"
Runner = Callable[..., Result]
CALLS_US = SITE + b'local has_score, score = pcall(require, "slurm_score")\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder in the place of slurm.conf's."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


def names(folder: Path) -> set[str]:
    """Return the names in a folder, hidden ones included."""
    return {path.name for path in folder.iterdir()}


def test_files_are_written_the_script_last_and_nothing_else_is_left(folder: Path) -> None:
    """Readable for all, and the script stamped in the second after now."""
    done = install(folder, b"script", {"slurm_score.lua": b"a", "slurm_score_json.lua": b"b"}, NOW)
    paths = (folder / "slurm_score.lua", folder / "slurm_score_json.lua", folder / "job_submit.lua")
    assert done == Installed(written=paths)
    assert [path.read_bytes() for path in paths] == [b"a", b"b", b"script"]
    assert [path.stat().st_mode & 0o7777 for path in paths] == [0o644] * 3
    assert paths[-1].stat().st_mtime == 1_700_000_001
    assert names(folder) == {path.name for path in paths}


def test_old_files_are_kept_beside_the_new_ones(folder: Path) -> None:
    """Only those that changed, under their names and the UTC time."""
    install(folder, b"old", {"slurm_score.lua": b"a", "slurm_score_json.lua": b"b"}, NOW - 100)
    done = install(folder, b"new", {"slurm_score.lua": b"a", "slurm_score_json.lua": b"c"}, NOW)
    assert done.written == (folder / "slurm_score_json.lua", folder / "job_submit.lua")
    assert done.kept == (folder / f"slurm_score_json.lua{ENDING}", folder / f"job_submit.lua{ENDING}")
    assert [path.read_bytes() for path in done.kept] == [b"b", b"old"]


def test_nothing_is_written_where_nothing_changed(folder: Path) -> None:
    """Not even a time stamp: slurmctld would load the script for nothing."""
    now_s = (folder.stat().st_mtime // 1) + 10
    install(folder, b"script", {"slurm_score.lua": b"a"}, now_s)
    before = {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in folder.iterdir()}
    assert install(folder, b"script", {"slurm_score.lua": b"a"}, now_s + 100) == Installed()
    assert {path: (path.stat().st_ino, path.stat().st_ctime_ns) for path in folder.iterdir()} == before


def test_a_changed_module_gives_the_script_a_later_stamp(folder: Path) -> None:
    """slurmctld watches the script alone; its content isn't new, so no old one is kept of it."""
    install(folder, b"script", {"slurm_score.lua": b"a"}, NOW)
    done = install(folder, b"script", {"slurm_score.lua": b"b"}, NOW + 100)
    assert done.written == (folder / "slurm_score.lua", folder / "job_submit.lua")
    assert [path.name for path in done.kept] == ["slurm_score.lua.old-20231114T221500Z"]
    assert (folder / "job_submit.lua").stat().st_mtime == 1_700_000_101


@pytest.mark.parametrize(("old_s", "new_s"), [(5.0, 1_700_000_001), (1_700_000_005.9, 1_700_000_006)])
def test_the_stamp_is_later_than_the_old_scripts(folder: Path, old_s: float, new_s: float) -> None:
    """Case 54: slurmctld remembers the stamp of the script that it loaded, a future one too."""
    path = folder / "job_submit.lua"
    path.write_bytes(b"old")
    os.utime(path, (old_s, old_s))
    install(folder, b"new", {}, NOW)
    assert path.stat().st_mtime == new_s


@pytest.mark.parametrize("call", ["fsync", "replace", "link"])
def test_a_write_that_fails_leaves_the_old_script_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whatever fails, in the data, the rename or the second name: the old script stays (trap 8)."""
    install(folder, b"old", {}, NOW - 100)
    before = (folder / "job_submit.lua").stat()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path if call == "replace" else os, call, fail)
    with pytest.raises(SlurmScoreError) as caught:
        install(folder, b"new", {}, NOW)
    assert str(caught.value) == (
        f"{folder}/job_submit.lua: can't be written: No space left on device; nothing was changed"
    )
    monkeypatch.undo()
    assert (folder / "job_submit.lua").read_bytes() == b"old"
    assert (folder / "job_submit.lua").stat().st_mtime == before.st_mtime
    assert names(folder) <= {"job_submit.lua", f"job_submit.lua{ENDING}"}


def test_an_installation_that_stopped_in_the_middle_is_finished_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The modules are new and the script has its old stamp: slurmctld has not loaded them."""
    install(folder, b"script", {"slurm_score.lua": b"a"}, NOW)
    replace = Path.replace

    def fail_for_script(self: Path, target: Path) -> Path:
        if target.name == "job_submit.lua":
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_script)
    with pytest.raises(SlurmScoreError, match=r"Input/output error; new by now: .*/slurm_score\.lua$"):
        install(folder, b"script", {"slurm_score.lua": b"b"}, NOW + 100)
    monkeypatch.undo()
    later_s = (folder / "slurm_score.lua").stat().st_mtime
    done = install(folder, b"script", {"slurm_score.lua": b"b"}, later_s)
    assert done.written == (folder / "job_submit.lua",)
    assert (folder / "job_submit.lua").stat().st_mtime == int(later_s) + 1


@pytest.mark.parametrize("name", ["job_submit.lua", "slurm_score.lua"])
def test_a_link_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    """Whoever may write to the folder, SlurmUser often, must not lead root to another file."""
    real = tmp_path / "real"
    real.write_bytes(b"old")
    (folder / name).symlink_to(real)
    with pytest.raises(SlurmScoreError) as caught:
        install(folder, b"new", {"slurm_score.lua": b"a"}, NOW)
    assert str(caught.value) == (
        f"{folder}/{name}: is a link to {real}, and links are not followed; "
        "remove it, or install where it leads with --to"
    )
    assert (real.read_bytes(), names(folder)) == (b"old", {name})


def test_shipped_files_are_those_of_the_source_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every module that job_submit.lua needs; in a wheel they are under share."""
    source = Path(__file__).parents[2] / "job_submit"
    files = shipped()
    assert files.script == (source / "job_submit.lua").read_bytes()
    assert set(files.modules) == {path.name for path in source.glob("slurm_score*.lua")}
    assert {"slurm_score.lua", "slurm_score_http.lua", "slurm_score_json.lua"} <= set(files.modules)
    monkeypatch.setattr(hookfile, "__file__", str(tmp_path / "lib" / "slurm_score" / "hookfile.py"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(SlurmScoreError, match="share/slurm-score/job_submit: the hook's files are not there"):
        shipped()
    wheel = tmp_path / "share" / "slurm-score" / "job_submit"
    wheel.mkdir(parents=True)
    (wheel / "job_submit.lua").write_bytes(b"s")
    (wheel / "slurm_score.lua").write_bytes(b"m")
    assert (shipped().script, shipped().modules) == (b"s", {"slurm_score.lua": b"m"})


def test_our_script_is_told_from_a_sites_own() -> None:
    """By its first line: a site that changed the options of ours still has ours."""
    ours = shipped().script
    assert is_ours(ours)
    assert is_ours(ours.replace(b"setup({})", b"setup({ deadline_s = 0.01 })"))
    assert not is_ours(CALLS_US)
    assert (mentions_us(CALLS_US), mentions_us(SITE)) == (True, False)


def test_a_new_folder_gets_ours(folder: Path) -> None:
    """And so does one with an older script of ours."""
    ours = shipped().script
    assert choose(None, folder, replace=False) == ours
    (folder / "job_submit.lua").write_bytes(ours + b"-- changed\n")
    assert choose(None, folder, replace=False) == ours


def test_a_site_script_that_calls_us_stays(folder: Path) -> None:
    """Its rules are the site's; the modules are brought up to date beside it."""
    (folder / "job_submit.lua").write_bytes(CALLS_US)
    assert choose(None, folder, replace=False) == CALLS_US
    assert choose(None, folder, replace=True) == shipped().script


def test_a_site_script_that_does_not_call_us_is_refused_with_the_lines_to_add(folder: Path) -> None:
    """Nothing of the site's is overwritten unasked."""
    (folder / "job_submit.lua").write_bytes(SITE)
    with pytest.raises(SlurmScoreError) as caught:
        choose(None, folder, replace=False)
    for line in lines_to_add(folder):
        assert f"\n    {line}\n" in str(caught.value)
    assert str(caught.value).startswith(f"{folder}/job_submit.lua: is not ours and was left alone")
    assert choose(None, folder, replace=True) == shipped().script


def test_a_given_script_is_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a warning if it never asks us."""
    script = folder / "site.lua"
    with pytest.raises(SlurmScoreError, match=r"site\.lua: no such file$"):
        choose(script, folder, replace=False)
    script.write_bytes(CALLS_US)
    assert choose(script, folder, replace=False) == CALLS_US
    assert capsys.readouterr().err == ""
    script.write_bytes(SITE)
    assert choose(script, folder, replace=False) == SITE
    assert (
        capsys.readouterr().err
        == f"warning: {script} never mentions slurm_score: no job gets a first score\n"
    )


def test_a_script_that_cant_be_tried_passes_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a host without slurmctld's Lua; case 53 shows here as well."""
    refuse_what_fails(b"x = = 1", "x.lua", SlurmConfig(plugin_dirs=(str(tmp_path),)))
    refuse_what_fails(b"x = = 1", "x.lua", SlurmConfig())
    (tmp_path / "job_submit_lua.so").write_bytes(b"\0liblua5.0.so.7\0")
    refuse_what_fails(b"x = = 1", "x.lua", SlurmConfig(plugin_dirs=(str(tmp_path),)))
    assert capsys.readouterr().err.splitlines() == [
        f"warning: the script was not tried: job_submit_lua.so is not in {tmp_path}",
        "warning: the script was not tried: job_submit_lua.so is not in any known folder",
        "warning: the script was not tried: Lua 5.0 is not on this host (looked for liblua5.0.so.7)",
    ]


@pytest.mark.parametrize(
    ("plugins", "changed", "text"),
    [
        (("lua",), True, "slurmctld loads it at the next submission"),
        (("lua",), False, "nothing to do: the files are there already"),
        (
            (),
            True,
            "the files are in place; add to slurm.conf\n    JobSubmitPlugins=lua\n"
            "and run `scontrol reconfigure`",
        ),
        (
            ("x",),
            False,
            "nothing to do: the files are there already; add to slurm.conf\n    JobSubmitPlugins=x,lua\n"
            "and run `scontrol reconfigure`",
        ),
    ],
)
def test_what_comes_next_is_said(plugins: tuple[str, ...], changed: bool, text: str) -> None:
    """slurm.conf is the admin's: the line is printed, never written."""
    assert outlook(SlurmConfig(job_submit_plugins=plugins), changed=changed) == text


@pytest.fixture
def run(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """The command on a host without Slurm's commands, with a slurm.conf."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    (folder / "slurm.conf").write_text(f"JobSubmitPlugins=lua # ours\nPluginDir={tmp_path}\n")
    return lambda *argv: CliRunner().invoke(main, ["install-hook", *argv])


def test_command_installs_beside_slurm_conf_and_then_has_nothing_to_do(run: Runner, folder: Path) -> None:
    """slurmctld may be down: slurm.conf tells the folder."""
    first, second = run(), run()
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.stdout.splitlines()[-2:] == [
        f"installed {folder}/job_submit.lua",
        "slurmctld loads it at the next submission",
    ]
    assert second.stdout == "nothing to do: the files are there already\n"
    assert names(folder) == {"slurm.conf", "job_submit.lua", *shipped().modules}


def test_command_installs_into_another_folder(run: Runner, tmp_path: Path, folder: Path) -> None:
    """And leaves slurm.conf's alone."""
    other = tmp_path / "other"
    assert run("--to", str(other)).exit_code == 2
    other.mkdir()
    assert run("--to", str(other)).exit_code == 0
    assert (names(folder), "job_submit.lua" in names(other)) == ({"slurm.conf"}, True)


def test_command_refuses_a_foreign_script_in_one_message(run: Runner, folder: Path) -> None:
    """Exit 1, nothing written; --replace keeps the old one; the two options exclude each other."""
    (folder / "job_submit.lua").write_bytes(SITE)
    refused = run()
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "is not ours and was left alone" in refused.stderr
    assert names(folder) == {"slurm.conf", "job_submit.lua"}
    assert run("--replace", "--script", "x").exit_code == 2
    assert run("--replace").exit_code == 0
    (kept,) = folder.glob("job_submit.lua.old-*")
    assert kept.read_bytes() == SITE


def test_command_without_slurm_needs_a_folder(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither slurmctld nor slurm.conf says where."""
    monkeypatch.setenv("SLURM_CONF", "/nonexistent/slurm.conf")
    failed = run()
    assert failed.exit_code == 1
    assert failed.stderr.endswith(
        "slurm-score: scontrol: not found; are Slurm's commands on PATH?; say where to install with --to\n"
    )
