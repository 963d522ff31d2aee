"""A cluster and what jobs ask of it as the columns that the kernels read. Pure."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from slurm_score.columns import Ints
from slurm_score.policy import Policy
from slurm_score.sim import nodes
from slurm_score.sim.cluster import Site
from slurm_score.sim.engine import CHUNK
from slurm_score.sim.needs import Fitted, classes, members
from slurm_score.sim.node_events import HAPPENS, NodeEvent, Requeue
from slurm_score.sim.policies import QueuePolicy


def needs_of(fitted: Fitted, site: Site, policy: QueuePolicy, order: Ints) -> tuple[Any, nodes.Needs]:
    """Return the values of the classes of GPU jobs, (place, GPU set) each, and the columns by row."""
    asked, work = fitted.asked, fitted.workload
    on_gpus = (asked.gpus > 0) & (fit_weight(policy) > 0)
    fits, values = classes((fitted.place, asked.gpu_set), on_gpus)
    qos = list(site.qos)
    code = np.array([qos.index(name) if name in qos else len(qos) for name in work.qos_names or ("",)])
    columns = (
        asked.nodes, asked.cores, fitted.mem_mib, asked.gpus, asked.exclusive, fitted.place,
        fitted.partition, asked.gpu_set, code[work.qos if work.qos is not None else 0 * asked.nodes], fits,
    )  # fmt: skip
    return values, nodes.Needs(*(cast(Any, np.ascontiguousarray(c[order], np.int64)) for c in columns))


def limits_of(
    site: Site, policy: QueuePolicy, happens: Sequence[NodeEvent], requeue: Requeue, fits: Any
) -> nodes.Limits:
    """Return the sizes and choices that the kernels take for given in one run."""
    return nodes.Limits(
        nodes=len(site.node_names),
        types=len(site.gpu_types),
        partitions=len(site.partitions),
        qos=len(site.qos) + 1,
        log=CHUNK,
        events=len(happens),
        keeps_wait=requeue.keeps_wait,
        checkpoints=requeue.checkpoints,
        preempts=any(site.preempts.values()),
        fcfs=policy.rule == "fcfs",
        fits=fits.shape[1],
        fit_weight=fit_weight(policy),
    )


def nodes_of(
    fitted: Fitted, site: Site, by_weight: Ints, deepest: int, happens: Sequence[NodeEvent], fits: Any
) -> nodes.Site:
    """Return the nodes in order of weight, all free; `deepest` is bf_max_job_test."""
    entries = site.procs + 1
    widest = np.sort(fitted.asked.nodes)[::-1][:deepest]
    shape = nodes.Shape(
        jobs=len(fitted.workload), nodes=len(by_weight), types=len(site.gpu_types),
        partitions=len(site.partitions), entries=entries, log=CHUNK + entries + len(by_weight),
        width=int(widest.sum()) + 1,
    )  # fmt: skip
    arrays = nodes.new_arrays(shape)
    fixed = {
        "cores": site.cores, "mem": site.mem_mib, "weight": site.weight, "gpus": site.gpus,
        "free_cores": site.cores, "free_mem": site.mem_mib, "free_gpus": site.gpus,
    }  # fmt: skip
    arrays |= {name: _flat(column[by_weight]) for name, column in fixed.items()}
    place = {site.node_names[node]: i for i, node in enumerate(by_weight.tolist())}
    timed = sorted(happens, key=lambda event: event.time_s)
    arrays |= {
        "allowed": _flat(fitted.allowed[:, by_weight]),
        "accepted": _flat(fitted.accepted),
        "members": _flat(members(site)[:, by_weight]),
        "below": _flat(_below(site)),
        "event_s": _flat([event.time_s for event in timed]),
        "event_kind": _flat([HAPPENS[event.what] for event in timed]),
        "event_node": _flat([place[event.node] for event in timed]),
        "fit_place": _flat(fits[0]),
        "fit_accepts": _flat(_accepts(fitted, site, fits)),
        "fit_usable": np.zeros(shape.types + 1),
        "fit_asked": np.zeros(fits.shape[1] + 1),
        "fit_points": np.zeros(fits.shape[1] + 1),
        "pressure": np.zeros(shape.types + 1),
    }
    return nodes.Site(**arrays)


def _flat(values: Any) -> Any:
    """Numbers as the kernels read them; never an array of length 0, nor the site's own."""
    flat = np.array(values, np.int64).reshape(-1)
    return flat if len(flat) else np.zeros(1, np.int64)


def _accepts(fitted: Fitted, site: Site, fits: Any) -> Any:
    """Which types of its set a class of jobs finds on its nodes, bool[n_fits, n_types]."""
    places, sets = fits
    return fitted.accepted[sets] & (fitted.allowed[places].astype(np.int64) @ site.gpus > 0)


def _below(site: Site) -> Any:
    """Whose jobs the jobs of a QOS may preempt, bool[n_qos + 1, n_qos + 1]; the last is for no known QOS."""
    names = list(site.qos)
    return [[other in site.preempts.get(name, ()) for other in [*names, ""]] for name in [*names, ""]]


def fit_weight(policy: QueuePolicy) -> float:
    rule = policy.rule
    return float(rule.factors["gres_fit"].weight) if isinstance(rule, Policy) else 0.0
