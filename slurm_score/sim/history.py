"""Kernels: what ended runs tell about the next one. Pure."""

from slurm_score.sim.state import CLAIRVOYANT, RECENT, RING, SCORED, TOLD, TSAFRIR, Jobs, State


def learn(jobs: Jobs, s: State, row: int) -> None:
    """Take note of a job that has ended."""
    user, group, run = jobs.user[row], jobs.group[row], jobs.run[row]
    s.before[user] = s.last[user]
    s.last[user] = run
    s.ring[group * RING + s.runs[group] % RING] = run
    s.runs[group] += 1
    s.median[group] = median(s.ring, group * RING, min(s.runs[group], RING))


def median(values: list[int], begin: int, count: int) -> float:
    """Return the median of a few numbers, from place `begin` on, by counting how many lie below each."""
    low = high = 0
    for i in range(begin, begin + count):
        below = same = 0
        for k in range(begin, begin + count):
            if values[k] < values[i]:
                below += 1
            elif values[k] == values[i]:
                same += 1
        if below <= (count - 1) // 2 < below + same:
            low = values[i]
        if below <= count // 2 < below + same:
            high = values[i]
    return (low + high) / 2


def told(jobs: Jobs, s: State, row: int) -> float:  # noqa: ARG001 - what stands in its place may look
    """Return what a predictor outside the kernel says; the engine puts that predictor in this place."""
    return 1.0 * jobs.request[row]


def scored(jobs: Jobs, s: State, row: int) -> float:  # noqa: ARG001 - as above
    """Return what the same predictor gives to a score of ours."""
    return 1.0 * jobs.request[row]


def forecast(jobs: Jobs, s: State, by: int, row: int) -> float:
    """Return the run time in s that is expected of a job now: at least 1, at most its request."""
    request, user, group = jobs.request[row], jobs.user[row], jobs.group[row]
    if by == CLAIRVOYANT:
        return 1.0 * jobs.run[row]
    if by == TOLD:
        return min(1.0 * request, max(1.0, told(jobs, s, row)))
    if by == SCORED:
        return min(1.0 * request, scored(jobs, s, row))
    if by == RECENT and s.runs[group] > 0:
        return min(1.0 * request, s.median[group])
    if by in (TSAFRIR, RECENT) and s.before[user] >= 0:
        return min(1.0 * request, 1.0 * ((s.last[user] + s.before[user]) // 2))
    return 1.0 * request
