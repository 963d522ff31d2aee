"""When Slurm's loops really ran, in the place of their intervals. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slurm_score.columns import Ints
from slurm_score.sim import slurm, state


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The moments at which each loop ran, int64[n_passes], in the unit and from the zero of the workload.

    slurmctld's log has them: "Running job scheduler" at level debug, "beginning" with DebugFlags=Backfill.
    """

    main_s: Ints
    backfill_s: Ints


def in_place_of_loops(passes: Passes) -> Mapping[Callable[..., Any], Any]:
    """Return what stands in the place of the kernels that say when a loop runs."""
    main, backfill = set(passes.main_s.tolist()), set(passes.backfill_s.tolist())
    every = sorted(main | backfill)

    def next_pass(s: state.State, _: state.Setup) -> int:
        at = bisect_right(every, s.n[state.CLOCK])
        return every[at] if at < len(every) else state.NEVER

    def backfill_due(setup: state.Setup, t: int) -> bool:
        return setup.backfill == state.SLURM and t in backfill

    def main_loop_due(_: state.State, __: int) -> bool:
        return False

    def main_loop_now(s: state.State, setup: state.Setup, t: int, _: bool) -> bool:
        s.n[state.LOOK] = next_pass(s, setup)
        return t in main

    return {
        slurm.next_pass: next_pass,
        slurm.backfill_due: backfill_due,
        slurm.main_loop_due: main_loop_due,
        slurm.main_loop_now: main_loop_now,
    }
