"""python -m tests.bench.fuzz SECONDS: throws texts at every grammar, guided by coverage.

Ends with exit code 0 when no text made a grammar raise anything but ParseError, hang, or keep memory;
the last lines are libFuzzer's figures, the peak of memory among them.
"""

import sys

import atheris

with atheris.instrument_imports(include=["slurm_score"]):
    from slurm_score.errors import ParseError
    from slurm_score.gres import count_gpus, count_gres, gpu_request, parse_gres
    from slurm_score.hints import format_hints, parse_hints
    from slurm_score.hosts import parse_hosts
    from slurm_score.jobid import parse_job_id
    from slurm_score.nodestate import parse_node_state
    from slurm_score.slurm.parse import parse_squeue, parse_update_failures
    from slurm_score.slurm.parse_nodes import parse_nodes
    from slurm_score.units import (
        format_duration,
        parse_count,
        parse_duration,
        parse_time_limit,
        parse_timestamp,
    )


def grammars(text: str) -> None:
    """Read a text with every grammar; whatever could be read must be written and read again the same."""
    for read in (parse_time_limit, parse_timestamp, parse_count, parse_node_state, parse_hosts):
        try:
            read(text)
        except ParseError:
            continue
    _duration(text)
    _job_id(text)
    _gres(text)
    hints = parse_hints(f"score: {text}")
    if parse_hints(format_hints(hints)) != parse_hints(format_hints(parse_hints(format_hints(hints)))):
        raise AssertionError(f"hints are not stable: {text!r}")
    parse_nodes(f"NodeName=n State=IDLE Gres={text}")
    parse_squeue(text, ":", "\n")
    list(parse_update_failures(text))


def _duration(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ParseError:
        return
    if seconds == int(seconds) and parse_duration(format_duration(seconds)) != seconds:
        raise AssertionError(f"duration {text!r} is not read back")


def _job_id(text: str) -> None:
    try:
        job_id = parse_job_id(text)
    except ParseError:
        return
    if not job_id.truncated and parse_job_id(str(job_id)) != job_id:
        raise AssertionError(f"job id {text!r} is not read back")


def _gres(text: str) -> None:
    try:
        items = parse_gres(text)
    except ParseError:
        return
    counted = count_gres(items)
    if counted.gpu.total < sum(counted.gpu.types.values()) or count_gpus(items).total != counted.gpu.total:
        raise AssertionError(f"GPUs of {text!r} do not add up")
    gpu_request(per_node=text, nodes=2)


def one_input(data: bytes) -> None:
    """Try one input."""
    grammars(atheris.FuzzedDataProvider(data).ConsumeUnicode(400))


def main() -> None:
    """Run for the seconds given on the command line, five minutes by default.

    Longer than 5 s for one text, or more than 512 MiB in all, ends it as a failure.
    """
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    limits = [f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=512", "-max_len=800"]
    quiet = ["-print_final_stats=1", "-verbosity=1", "-artifact_prefix=.cache/"]
    atheris.Setup([sys.argv[0], *limits, *quiet], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
