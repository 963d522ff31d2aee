"""etc/guide.md, step by step as it stands there, on a cluster that knows nothing of slurm-score.

The image stands for the first block, pip, and systemctl.py for systemd. All other blocks are run by bash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from .harness import Cluster, Result, wait_for
from .product import HOOK_PATH, POLICY_PATH, Product
from .topology import ROOT

GUIDE = (ROOT / "etc" / "guide.md").read_text(encoding="utf-8")
SYSTEMCTL = (ROOT / "tests" / "live" / "systemctl.py").read_text(encoding="utf-8")
STEP = re.compile(r"^## \d\. (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```sh\n(.+?)^```$", re.MULTILINE | re.DOTALL)
DAEMONS = ["pgrep", "--full", "slurm-score (serve|reprioritize)"]


@pytest.fixture(scope="module")
def bare(_engine: None) -> Iterator[Cluster]:
    """A cluster without hook, policy and daemons of ours, whose user runs a job and has three waiting."""
    with Cluster("24.11", daemons=(), slurm_conf={"JobSubmitPlugins": None}) as cluster:
        cluster.write_file("/usr/local/bin/systemctl", SYSTEMCTL, mode=0o755)
        product = Product(cluster)
        product.fill()
        for name, minutes in (("long", 6000), ("middle", 600), ("short", 10)):
            product.submit("--gres=gpu:a100:1", f"--time={minutes}", f"--job-name={name}")
        yield cluster


def steps() -> dict[str, list[str]]:
    """Return the blocks of each step of the guide by its heading."""
    parts = STEP.split(GUIDE.partition("\n## What to watch")[0])
    return {name: BLOCK.findall(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


class Reader:
    """Somebody who goes through the guide and looks at what each block prints."""

    def __init__(self, cluster: Cluster) -> None:
        self.product, self._todo = Product(cluster), steps()
        self.done: list[str] = []

    def do(self, step: str) -> list[Result]:
        """Return what the blocks of the next step printed; bash ends a block at its first failure."""
        self.done.append(step)
        return [self._run(block) for block in self._todo.pop(step)]

    def left(self) -> list[str]:
        """Return the steps that were not gone through."""
        return list(self._todo)

    def _run(self, block: str) -> Result:
        result = self.product.exec(["bash", "-eu", "-o", "pipefail", "-c", block])
        if "sed -i 's/^mode" in block:
            mode = re.findall("mode: ([a-z]+)/", block)[-1]
            wait_for(lambda: self.product.health().get("mode") == mode, 30, f"the service has seen {mode}")
        return result


def test_guide_can_be_followed(bare: Cluster) -> None:
    """Each step does what the guide says of it, and the last one leaves nothing behind."""
    reader = Reader(bare)
    product = reader.product
    order = ["long", "middle", "short"]

    reader.do("Install")
    assert bare.exec(DAEMONS, check=False).stdout == ""

    _, look, _, trial = reader.do("Observe")
    assert "RANK" in look.stdout
    assert set(product.sites().values()) == {0}
    assert product.order() != list(reversed(order))
    assert "remaining=900" in trial.stdout
    assert product.update_rpcs() == 0

    (installed,) = reader.do("The submit hook")
    assert HOOK_PATH in installed.stdout

    *_, hinted = reader.do("Advise")
    assert "slurm-score: hint 'est=soon' ignored" in hinted.stderr
    assert set(product.sites().values()) == {0}

    *_, history = reader.do("Enforce")
    assert len(set(product.sites().values())) > 1
    assert product.order()[0] == "short"
    assert product.order()[-2:] == ["middle", "long"]
    assert "sent" in history.stdout

    stopped, reset = reader.do("The way back")
    assert "0 sent" in stopped.stdout
    assert "kill switch /var/lib/slurm-score/STOP" in stopped.stdout
    assert reset.stdout.startswith("4 jobs set to 0")
    assert set(product.sites().values()) == {0}
    assert product.health()["mode"] == "observe"

    reader.do("Away with it")
    assert bare.exec(DAEMONS, check=False).stdout == ""
    left = bare.exec(["find", "/etc/slurm", "/etc/systemd/system", "-name", "*score*"]).stdout.splitlines()
    assert [path for path in left if path.endswith((".lua", ".yaml", ".service"))] == []
    assert product.submit("--gres=gpu:a100:1", "--time=5") > 0
    assert reader.left() == []
    assert POLICY_PATH not in left
