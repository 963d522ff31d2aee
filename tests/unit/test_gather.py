"""slurm_score/gather.py and `slurm-score check`: what is seen of files, slurm.conf and slurmctld."""

import json
import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_score import gather as gather_module
from slurm_score.checks.facts import LuaFacts, Rights
from slurm_score.cli import main
from slurm_score.gather import (
    Places,
    find_account,
    find_folder,
    find_plugin,
    gather,
    look_at_file,
    look_at_hook,
    look_at_slurm,
    read_slurm_conf,
)
from slurm_score.model import SlurmConfig
from slurm_score.slurm.commands import Answer, CommandGateway
from tests.unit.slurm_texts import CONFIG, USERS

HOOK_DIR = Path(__file__).parents[2] / "job_submit"
DOWN = "Unable to contact slurm controller (connect failure)"


def answering(argv: Sequence[str], _stdin: str, _timeout_s: float) -> Answer:
    """What a slurmctld answers whose SlurmUser is root."""
    text = CONFIG.replace("slurm(64030)", "root(0)") if "config" in argv else USERS
    return Answer(0, text, "")


def down(_argv: Sequence[str], _stdin: str, _timeout_s: float) -> Answer:
    """What scontrol says where slurmctld is down."""
    return Answer(1, "", DOWN)


def test_a_slurm_that_answers_tells_configuration_and_who_we_are() -> None:
    """And SlurmUser with its groups."""
    facts = look_at_slurm(CommandGateway(run=answering))
    assert (facts.answers, facts.error, facts.config and facts.config.release) == (True, "", "22.05.8")
    assert facts.identity is not None
    assert facts.slurm_user == find_account("root")


def test_an_answer_that_fails_halfway_is_kept() -> None:
    """The configuration is there, the identity is not."""

    def half(argv: Sequence[str], stdin: str, timeout_s: float) -> Answer:
        return (answering if "config" in argv else down)(argv, stdin, timeout_s)

    facts = look_at_slurm(CommandGateway(run=half))
    assert (facts.answers, facts.identity) == (True, None)
    assert facts.error.endswith(DOWN)


def test_where_slurmctld_is_down_slurm_conf_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 48: a slurmctld that doesn't start for want of the script can't be asked where it belongs."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "JobSubmitPlugins = job_submit/lua,x # ours\n#PluginDir=/no\nSlurmUser=root\nplugindir=/a:/b\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    facts = look_at_slurm(CommandGateway(run=down))
    assert (facts.answers, facts.error) == (False, f"scontrol show config: exit 1: {DOWN}")
    assert facts.config == SlurmConfig(
        slurm_user="root",
        job_submit_plugins=("lua", "x"),
        plugin_dirs=("/a", "/b"),
        slurm_conf=str(conf),
    )
    assert facts.slurm_user == find_account("root")


def test_plugins_are_looked_for_in_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PluginDir is by default was decided when Slurm was built."""
    conf, plugins = tmp_path / "slurm.conf", tmp_path / "lib" / "slurm-wlm"
    conf.write_text("ClusterName=x\n")
    plugins.mkdir(parents=True)
    pattern = str(tmp_path / "*" / "slurm-wlm").removeprefix("/")
    monkeypatch.setattr(gather_module, "USUAL_PLUGIN_DIRS", (pattern,))
    assert read_slurm_conf(conf) == SlurmConfig(slurm_user="root", slurm_conf=str(conf))
    (plugins / "job_submit_lua.so").touch()
    config = read_slurm_conf(conf)
    assert config is not None
    assert config.plugin_dirs == (str(plugins),)
    assert find_plugin(config) == plugins / "job_submit_lua.so"
    assert read_slurm_conf(tmp_path / "none.conf") is None


def test_folder_of_the_hook_is_that_of_slurm_conf() -> None:
    """slurmctld looks nowhere else."""
    assert find_folder(SlurmConfig(slurm_conf="/opt/etc/slurm.conf")) == Path("/opt/etc")
    assert find_folder(SlurmConfig()) == Path("/etc/slurm")


def test_a_file_is_seen_with_its_folders_and_times(tmp_path: Path) -> None:
    """From the root on, so that the first folder that hides it is named."""
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0o640)
    os.utime(path, (5, 5))
    file, error = look_at_file(path)
    assert (file is not None, error) == (True, "")
    assert file is not None
    assert (file.kind, file.mtime_s, file.rights) == (
        "file",
        5,
        Rights(str(path), os.geteuid(), os.getegid(), 0o640),
    )
    assert file.folders[0].path == "/"
    assert file.folders[-1].path == str(tmp_path)
    assert file.ctime_s > 5


def test_kinds_of_files_are_told_apart(tmp_path: Path) -> None:
    """A socket, a folder, a device, and nothing."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
        kinds = [look_at_file(path)[0] for path in (tmp_path / "s", tmp_path, Path("/dev/null"))]
        assert [file and file.kind for file in kinds] == ["socket", "folder", "device"]
    assert look_at_file(tmp_path / "none") == (None, "no such file or directory")


def test_the_hook_is_seen_as_it_is_on_disk(tmp_path: Path) -> None:
    """A changed module, a missing one, and a plugin whose Lua isn't on this host."""
    for path in HOOK_DIR.glob("*.lua"):
        shutil.copy(path, tmp_path)
    (tmp_path / "slurm_score_http.lua").write_text("-- changed")
    (tmp_path / "slurm_score_json.lua").unlink()
    (tmp_path / "job_submit_lua.so").write_bytes(b"\0liblua5.0.so.7\0")
    config = SlurmConfig(slurm_conf=str(tmp_path / "slurm.conf"), plugin_dirs=("/none", str(tmp_path)))
    hook = look_at_hook(config, tmp_path / "hook.sock")
    assert (hook.script_path, hook.error, hook.trial) == (str(tmp_path / "job_submit.lua"), "", None)
    assert hook.mentions_us
    assert hook.lua == LuaFacts(
        plugin=str(tmp_path / "job_submit_lua.so"),
        error="Lua 5.0 is not on this host (looked for liblua5.0.so.7)",
    )
    seen = {module.name: (module.file is not None, module.as_shipped) for module in hook.modules}
    assert seen["slurm_score.lua"] == (True, True)
    assert seen["slurm_score_http.lua"] == (True, False)
    assert seen["slurm_score_json.lua"][0] is False
    assert (hook.socket, hook.socket_error) == (None, "no such file or directory")


def test_a_missing_script_is_seen_as_missing(tmp_path: Path) -> None:
    """Case 48."""
    hook = look_at_hook(SlurmConfig(slurm_conf=str(tmp_path / "slurm.conf")), tmp_path / "s")
    assert (hook.script, hook.error, hook.lua) == (None, "no such file or directory", LuaFacts())


def test_everything_is_gathered_where_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be had is told as such, and nothing raises."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("PATH", str(tmp_path))
    places = Places(*(tmp_path / name for name in ("policy.yaml", "snapshot.jsonl", "s.sock", "h.sock")))
    facts = gather(CommandGateway(), places)
    assert facts.slurm.missing_commands == ("scontrol", "squeue", "sprio", "sacct")
    assert (facts.slurm.config, facts.slurm.identity, facts.slurm.slurm_user) == (None, None, None)
    assert facts.policy.problems == (
        f"{tmp_path}/policy.yaml: can't read the policy: No such file or directory",
    )
    assert (
        facts.snapshot.error == f"{tmp_path}/snapshot.jsonl: no snapshot yet; is the reprioritizer running?"
    )
    assert facts.service.error.startswith(f"{tmp_path}/s.sock: the scoring service does not answer")


def test_command_lists_everything_and_exits_with_1_on_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As lines with a count at the end, or as JSON."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "policy.yaml").write_text("mode: obsreve\ncap: -1\n")
    argv = ["check", "--policy", str(tmp_path / "policy.yaml"), "--snapshot", str(tmp_path / "s.jsonl")]
    argv += ["--socket", str(tmp_path / "s.sock"), "--hook-socket", str(tmp_path / "h.sock")]
    lines, as_json = (CliRunner().invoke(main, [*argv, *more]) for more in ([], ["--json"]))
    assert (lines.exit_code, as_json.exit_code) == (1, 1)
    answer = json.loads(as_json.stdout)
    shown = lines.stdout.splitlines()
    assert shown[-1] == f"{len(shown) - 1} checks, {answer['errors']} errors, {answer['warnings']} warnings"
    assert [check["name"] for check in answer["checks"]].count("policy") == 2
    assert answer["checks"][0] == {
        "name": "commands",
        "level": "error",
        "found": "not on PATH: scontrol, squeue, sprio, sacct",
        "remedy": "install Slurm's client commands here",
    }


def test_a_path_of_the_wrong_kind_is_a_result_and_no_wrong_use(tmp_path: Path) -> None:
    """A folder where the socket or the policy should be: exit 1 with a line, not 2 with a usage."""
    argv = ["check", "--policy", str(tmp_path), "--snapshot", str(tmp_path), "--socket", str(tmp_path)]
    result = CliRunner().invoke(main, [*argv, "--hook-socket", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{tmp_path} is a folder, not a socket" in result.stdout
    assert f"{tmp_path}: can't read the policy: Is a directory" in result.stdout
