"""Nodes of one core, each busy until some second, and what the kernels foresee for one more job."""

from collections.abc import Sequence
from types import SimpleNamespace as Some

from slurm_score.sim.foresee import foresee_start
from slurm_score.sim.placing import find_start
from slurm_score.sim.state import RUNNING

NOW, LATEST = 5, 500


class BusyNodes:
    """It is second 5; a job leaves node i in second `ready[i]`, and `spans[i]` are its reservations."""

    def __init__(self, ready: Sequence[int], spans: Sequence[Sequence[tuple[int, int]]]) -> None:
        nodes = len(ready)
        flat = [(node, begin, end) for node, found in enumerate(spans) for begin, end in sorted(found)]
        node_span, span_next = [-1] * nodes, [-1] * len(flat)
        for at in range(len(flat) - 1, -1, -1):
            span_next[at], node_span[flat[at][0]] = node_span[flat[at][0]], at
        last_first = sorted(range(nodes), key=lambda node: (-ready[node], -node))
        self.nodes, self.ready = nodes, list(ready)
        self.running = Some(
            plan_s=[ready[node] for node in last_first], plan_row=last_first, n={RUNNING: nodes}
        )
        self.site = Some(
            state=[0] * nodes, allowed=[1] * nodes, weight=[1] * nodes, occupants=[1] * nodes,
            free_cores=[0] * nodes, free_mem=[0] * nodes, free_gpus=[], node_head=list(range(nodes)),
            job_head=list(range(nodes)), entry_row=list(range(nodes)), entry_node=list(range(nodes)),
            entry_cores=[1] * nodes, entry_mem=[0] * nodes, entry_on_node=[-1] * nodes,
            entry_of_job=[-1] * nodes, node_span=node_span, span_begin=[begin for _, begin, _ in flat],
            span_end=[end for _, _, end in flat], span_next=span_next, ready=[0] * nodes,
            opens=[0] * nodes, picked=[0] * nodes, spare=[0] * nodes,
        )  # fmt: skip

    def earliest(self, count: int, length: int) -> int:
        """Return the earliest second in which a job can have so many nodes for so long."""
        state, limits, needs = self._asked(count, length)
        return find_start(state, self.site, limits, needs, self.nodes, NOW, LATEST)  # type: ignore[arg-type]

    def foreseen(self, count: int, length: int, linear: int = 0) -> int:
        """Return the second that Slurm foresees for it, with its bf_window_linear."""
        state, limits, needs = self._asked(count, length)
        setup = Some(end_window=30, bf_window_linear=linear, bf_resolution=1)
        return foresee_start(state, setup, self.site, limits, needs, self.nodes, NOW, LATEST)  # type: ignore[arg-type]

    def _asked(self, count: int, length: int) -> tuple[Some, Some, Some]:
        zeros = [0] * (self.nodes + 1)
        self.running.start, self.running.planned = zeros, [*self.ready, length]
        needs = Some(nodes=[*zeros[1:], count], cores=[1] * len(zeros), mem=zeros, gpus=zeros,
                     exclusive=zeros, place=zeros, gpu_set=zeros)  # fmt: skip
        return self.running, Some(nodes=self.nodes, types=0), needs
