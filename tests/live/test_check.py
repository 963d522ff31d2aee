"""`slurm-score check` finds what is broken on a real cluster; slurmctld loads what install-hook installs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .harness import Cluster, Result, wait_for
from .product import HOOK_PATH, Product
from .topology import replace_parameters

FOLDER = "/etc/slurm"
SLURM_CONF = f"{FOLDER}/slurm.conf"
HOOK_SOCKET = "/run/slurm-score/hook.sock"
OBSERVE = "mode: observe\n"
BROKEN = "function slurm_job_submit( return end\n"
RULE = """\
function slurm_job_submit(job_desc, part_list, submit_uid)
  slurm.log_user("%s")
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""


@pytest.fixture
def product(cluster: Cluster) -> Iterator[Product]:
    """A healthy product, its hook loaded from freshly installed files; put right again afterwards."""
    product = Product(cluster)
    product.set_policy(OBSERVE)
    _mend(product)
    yield product
    _mend(product)


def _mend(product: Product) -> None:
    install(product, "--replace")
    product.cluster.exec(["sh", "-c", f"rm -f {FOLDER}/*.old-*"])
    product.cycle()
    product.submit("--hold")
    product.cluster.clear_jobs()


def install(product: Product, *options: str, check: bool = True) -> Result:
    """Returns what install-hook said."""
    return product.cluster.exec(["slurm-score", "install-hook", *options], check=check)


def found(product: Product) -> dict[str, str]:
    """Returns what isn't ok by name, as `level: what was found; remedy`; exit code 1 goes with an error."""
    result = product.cluster.exec(["slurm-score", "check", "--json"], check=False)
    answer = json.loads(result.stdout)
    assert result.returncode == (1 if answer["errors"] else 0), result.stderr
    return {
        check["name"]: f"{check['level']}: {check['found']}; {check['remedy']}"
        for check in answer["checks"]
        if check["level"] != "ok"
    }


@contextmanager
def hidden(cluster: Cluster, path: str) -> Iterator[None]:
    """A file or folder under another name for as long as the context lasts."""
    cluster.exec(["mv", path, f"{path}.hidden"])
    try:
        yield
    finally:
        cluster.exec(["mv", f"{path}.hidden", path])


def plugin_dir(cluster: Cluster) -> str:
    """Returns where Slurm's plugins are."""
    lines = cluster.exec(["scontrol", "show", "config"]).stdout.splitlines()
    return next(line.split("=")[1].strip() for line in lines if line.startswith("PluginDir"))


def test_a_healthy_cluster_passes(product: Product) -> None:
    """Nothing but ok: slurmctld's Lua is found in its plugin, loaded, and takes our script and LuaSocket."""
    assert found(product) == {}
    text = product.cluster.exec(["slurm-score", "check"]).stdout
    assert "job_submit_lua.so is built with Lua 5.1\n" in text
    assert "LuaSocket 3" in text


def test_an_ordinary_user_may_look_and_lacks_the_right(product: Product) -> None:
    """alice sees that she may not set SiteFactor; in observe that is no error."""
    result = product.cluster.exec(["slurm-score", "check"], user="alice", check=False)
    assert "warning  right               user alice may not set SiteFactor (AdminLevel=None)" in result.stdout


def test_case_49_a_hidden_luasocket_is_found(product: Product) -> None:
    """The modules in C for slurmctld's own Lua; those for the other Luas are still there."""
    argv = ["find", "/usr", "-type", "d", "-path", "*/lua/5.1/socket"]
    folders = product.cluster.exec(argv).stdout.split()
    (folder,) = (path for path in folders if "/share/" not in path)
    with hidden(product.cluster, folder):
        wrong = found(product)
    assert list(wrong) == ["luasocket"]
    assert wrong["luasocket"].startswith("error: LuaSocket does not load in Lua 5.1: ")
    assert found(product) == {}


def test_case_53_a_missing_plugin_is_found(product: Product) -> None:
    """slurmctld has it in memory; its next start would fail."""
    path = f"{plugin_dir(product.cluster)}/job_submit_lua.so"
    with hidden(product.cluster, path):
        wrong = found(product)
    assert wrong["lua"].startswith("error: Slurm was built without Lua: no job_submit_lua.so in /usr/lib/")
    assert wrong["hook script"] == f"warning: {HOOK_PATH} was not looked at: no Lua to do so; "


def test_case_54_a_broken_script_with_an_old_stamp_is_found(product: Product) -> None:
    """slurmctld neither loads it nor says a word; it would not start with it."""
    product.cluster.write_file(HOOK_PATH, BROKEN)
    product.cluster.exec(["touch", "--date=@1600000000", HOOK_PATH])
    assert product.submit("--hold") > 0
    wrong = found(product)
    assert list(wrong) == ["hook script", "hook loaded"]
    assert wrong["hook script"].startswith(f"error: {HOOK_PATH}: Lua does not take it: {HOOK_PATH}:1: ")
    assert wrong["hook loaded"].endswith(f"perhaps not seen: {HOOK_PATH}; `touch {HOOK_PATH}`")


def test_case_54_an_unseen_script_is_loaded_after_the_remedy(product: Product) -> None:
    """A good script with an old stamp, as rsync or a package leaves it: the `touch` that is advised helps."""
    text = product.cluster.read_file(HOOK_PATH)
    wait_for_next_second(product)
    product.cluster.write_file(HOOK_PATH, f"{text}-- changed\n")
    product.cluster.exec(["touch", "--date=@1600000000", HOOK_PATH])
    product.submit("--hold")
    assert list(found(product)) == ["hook loaded"]
    wait_for_next_second(product)
    product.cluster.exec(["touch", HOOK_PATH])
    assert found(product) == {}
    product.submit("--hold")
    assert found(product) == {}


def wait_for_next_second(product: Product) -> None:
    """Returns when what is written now is later than what was written before, in whole seconds."""
    now_s = product.now_s()
    wait_for(lambda: product.now_s() > now_s + 1, 10, "the second after the next")


def test_a_service_that_is_down_is_found(product: Product) -> None:
    """Both sockets go with it."""
    product.cluster.stop_daemon("service")
    try:
        wrong = found(product)
    finally:
        product.cluster.start_daemon("service")
    assert wrong["service"].startswith(
        "error: /run/slurm-score/slurm-score.sock: the scoring service does not"
    )
    assert wrong["hook socket"].startswith(f"error: {HOOK_SOCKET}: no such file or directory")


def test_a_socket_with_the_wrong_owner_is_found(product: Product) -> None:
    """slurmctld runs as SlurmUser and may then not connect."""
    product.cluster.exec(["chown", "root:root", HOOK_SOCKET])
    try:
        wrong = found(product)
    finally:
        product.cluster.exec(["chown", "slurm:slurm", HOOK_SOCKET])
    assert list(wrong) == ["hook socket"]
    assert wrong["hook socket"].startswith(
        f"error: slurm can't connect to {HOOK_SOCKET}, kept out by {HOOK_SOCKET} (mode 0600, owner 0:0)"
    )


def test_case_48_a_missing_script_is_found_and_put_there_while_slurmctld_is_down(product: Product) -> None:
    """slurmctld doesn't start without it and can't be asked; slurm.conf tells what is wanted."""
    product.cluster.stop_daemon("slurmctld")
    try:
        with hidden(product.cluster, HOOK_PATH):
            started = product.cluster.exec(["timeout", "20", "slurmctld", "-D"], user="slurm", check=False)
            wrong = found(product)
            installed = install(product)
            product.cluster.exec(["rm", HOOK_PATH])
    finally:
        product.cluster.start_daemon("slurmctld")
    assert (started.returncode, "job_submit" in started.stderr) == (1, True)
    assert wrong["slurmctld"].startswith("error: scontrol show config: exit 1: ")
    assert wrong["hook script"].startswith(
        f"error: {HOOK_PATH}: no such file or directory: slurmctld does not start without it"
    )
    assert f"installed {HOOK_PATH}\n" in installed.stdout


def test_a_sites_script_runs_at_the_next_submission(product: Product) -> None:
    """Each installation at once, two within a second too; the old one is kept."""
    for text in ("first rule", "second rule"):
        product.cluster.write_file("/tmp/site.lua", RULE % text)
        said = install(product, "--script", "/tmp/site.lua")
        assert "never mentions slurm_score" in said.stderr
        assert text in product.sbatch("--hold").stderr
    kept = product.cluster.exec(["sh", "-c", f"cat {FOLDER}/job_submit.lua.old-*"]).stdout
    assert "first rule" in kept
    assert list(found(product)) == ["hook script"]


def test_a_broken_script_is_refused_and_slurmctld_goes_on(product: Product) -> None:
    """Lua's own message, nothing written, and the next submission as before."""
    before = product.cluster.exec(["sh", "-c", f"ls -l --full-time {FOLDER}; cat {HOOK_PATH}"]).stdout
    product.cluster.write_file("/tmp/site.lua", BROKEN)
    refused = install(product, "--script", "/tmp/site.lua", check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "/tmp/site.lua: Lua does not take it: /tmp/site.lua:1: " in refused.stderr
    assert product.cluster.exec(["sh", "-c", f"ls -l --full-time {FOLDER}; cat {HOOK_PATH}"]).stdout == before
    assert product.submit("--hold") > 0
    assert found(product) == {}


def test_a_foreign_script_is_left_alone(product: Product) -> None:
    """The lines to add are told; with them, install-hook keeps the script and brings the modules."""
    wait_for_next_second(product)
    product.cluster.write_file(HOOK_PATH, RULE % "a rule")
    refused = install(product, check=False)
    assert refused.returncode == 1
    added = [line.strip() for line in refused.stderr.splitlines() if line.startswith("slurm-score:     ")]
    top, call = (line.removeprefix("slurm-score:").strip() for line in added)
    lines = [top, *(RULE % "a rule").splitlines()]
    lines.insert(lines.index("  return slurm.SUCCESS"), call)
    product.cluster.write_file("/tmp/site.lua", "\n".join(lines))
    assert install(product, "--script", "/tmp/site.lua").stderr == ""
    assert "a rule" in product.sbatch("--hold").stderr
    assert found(product) == {}
    assert install(product).stdout == "nothing to do: the files are there already\n"


def test_lua_in_job_submit_plugins_takes_effect_with_a_reconfigure(product: Product) -> None:
    """As install-hook says; nothing has to be restarted."""
    former = product.cluster.read_file(SLURM_CONF)
    product.cluster.stop_daemon("slurmctld")
    product.cluster.write_file(SLURM_CONF, replace_parameters(former, {"JobSubmitPlugins": None}))
    product.cluster.start_daemon("slurmctld")
    loads = hook_loads(product)
    try:
        assert list(found(product)) == ["job submit plugins"]
        assert install(product).stdout == (
            "nothing to do: the files are there already; add to slurm.conf\n    JobSubmitPlugins=lua\n"
            "and run `scontrol reconfigure`\n"
        )
    finally:
        product.cluster.write_file(SLURM_CONF, former)
        product.cluster.exec(["scontrol", "reconfigure"])
    wait_for(lambda: "job submit plugins" not in found(product), 30, "slurmctld has its new configuration")
    assert hook_loads(product) == loads + 1


def hook_loads(product: Product) -> int:
    """Returns how often slurmctld's log says that the hook was loaded."""
    return product.cluster.read_file("/var/log/slurm/slurmctld.log").count("slurm_score: version")
