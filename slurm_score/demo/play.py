"""Plays a scenario on the fake Slurm: first come, first served, or under the product."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from slurm_score.demo.scenarios import Scenario
from slurm_score.policy import Guard, Mode, Policy
from slurm_score.reprioritizer import Reprioritizer
from slurm_score.service.background import running_service
from slurm_score.service.client import ServiceClient
from slurm_score.service.server import Addresses
from slurm_score.service.state import State
from slurm_score.slurm.fake import FakeSlurm, JobRun
from slurm_score.slurm.fake import JobSubmit as SubmitHook
from slurm_score.watch import Watched, read_policy

Cycle = Callable[[], object]


class Play:
    """A scenario on its cluster, played tick by tick; after the jobs of a tick have come, `cycle` runs."""

    def __init__(self, scenario: Scenario, slurm: FakeSlurm, cycle: Cycle = lambda: None) -> None:
        self.slurm = slurm
        self._scenario = scenario
        self._cycle = cycle
        self._start_s = slurm.now_s
        self._next_s = 0
        self._coming = list(scenario.arrivals)
        slurm.update_partition(scenario.partition.name, up=False)

    def play_to(self, at_s: int) -> None:
        """Play to a time, its jobs and its cycle included; nothing has been started then that they bring."""
        while self._next_s <= at_s:
            self._tick()

    def play_out(self) -> dict[str, JobRun]:
        """Play until all jobs are done; return what became of them, by name."""
        while self._coming or self.slurm.read_jobs():
            self._tick()
        return {run.name: run for run in self.slurm.history.values()}

    def _tick(self) -> None:
        at_s, self._next_s = self._next_s, self._next_s + self._scenario.every_s
        self.slurm.advance(self._start_s + at_s)
        while self._coming and self._coming[0].at_s <= at_s:
            self.slurm.submit(self._coming.pop(0).submission)
        self._cycle()
        if at_s == self._scenario.opens_s:
            self.slurm.update_partition(self._scenario.partition.name, up=True)


@dataclass(frozen=True, slots=True)
class Product:
    """The product at work on a fake Slurm: `set_mode` edits its policy file as an admin would."""

    play: Play
    slurm: FakeSlurm
    client: ServiceClient
    reprioritizer: Reprioritizer
    state: State

    def set_mode(self, mode: Mode) -> None:
        """Write a policy with this mode and the defaults otherwise."""
        self.state.policy.path.write_text(f"mode: {mode}\n", encoding="utf-8")
        self.state.refresh()


@contextmanager
def under_product(scenario: Scenario) -> Iterator[Product]:
    """Run service and reprioritizer, in observe, on a new cluster of the scenario."""
    with TemporaryDirectory(prefix="slurm-score-") as name:
        folder = Path(name)
        policy, snapshot = folder / "policy.yaml", folder / "snapshot.jsonl"
        policy.write_text(f"mode: {Mode.OBSERVE}\n", encoding="utf-8")
        addresses = Addresses(hook=folder / "hook.sock", readers=folder / "score.sock")
        slurm = _cluster(scenario, ServiceClient(addresses.hook).score)
        reprioritizer = Reprioritizer(slurm, Watched(policy, read_policy).current, snapshot)
        state = State(policy, snapshot, lambda: slurm.now_s)

        def cycle() -> None:
            reprioritizer.cycle()
            state.refresh()  # the service would look by itself, but not by the scenario's clock

        with running_service(state, addresses):
            play = Play(scenario, slurm, cycle)
            yield Product(play, slurm, ServiceClient(addresses.readers), reprioritizer, state)


def first_come_first_served(scenario: Scenario) -> dict[str, JobRun]:
    """Return what becomes of a scenario's jobs, by name, where nobody scores them."""
    return Play(scenario, _cluster(scenario)).play_out()


def without_guard(scenario: Scenario) -> dict[str, JobRun]:
    """Return what becomes of a scenario's jobs, by name, under the default score without its guard tier."""
    policy = Policy().model_copy(update={"mode": Mode.ENFORCE, "guard": Guard.model_construct(after=inf)})
    with TemporaryDirectory(prefix="slurm-score-") as name:
        slurm = _cluster(scenario)
        reprioritizer = Reprioritizer(slurm, lambda: policy, Path(name) / "snapshot.jsonl")
        return Play(scenario, slurm, reprioritizer.cycle).play_out()


def _cluster(scenario: Scenario, job_submit: SubmitHook | None = None) -> FakeSlurm:
    return FakeSlurm(scenario.nodes, [scenario.partition], scenario.qos, job_submit=job_submit)
