"""slurm-score parse: how a text is read, as JSON, or why it can't be."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from slurm_score.cli import main

NOTHING = {"total": 0, "types": {}}


def _parse(kind: str, text: str) -> Any:
    result = CliRunner().invoke(main, ["parse", kind, text])
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        pytest.param("gpu:k80:4(IDX:0-3)", {"gpu": {"total": 4, "types": {"k80": 4}}}, id="case 1"),
        pytest.param("gpu:h100:4(S:0-3)", {"gpu": {"total": 4, "types": {"h100": 4}}}, id="case 2"),
        pytest.param(
            "gpu:tesla:2,gpu:kepler:2",
            {"gpu": {"total": 4, "types": {"tesla": 2, "kepler": 2}}},
            id="case 3",
        ),
        pytest.param(
            "gpu:nvidia_h200_nvl_4g.71gb:2(S:0-1)",
            {"mig": {"total": 2, "types": {"nvidia_h200_nvl_4g.71gb": 2}}},
            id="case 4",
        ),
        pytest.param(
            "cpu=8,mem=64G,node=1,gres/gpu:nvidia_geforce_rtx_2080_ti=1",
            {"gpu": {"total": 1, "types": {"nvidia_geforce_rtx_2080_ti": 1}}},
            id="case 5",
        ),
        pytest.param(
            "cpu=64,node=1,gres/gpu=8,gres/gpu:h100=8",
            {"gpu": {"total": 8, "types": {"h100": 8}}},
            id="case 6",
        ),
        *(
            pytest.param(text, {"gpu": {"total": 2, "types": {"a100": 2}}}, id=f"case 7, {text}")
            for text in ("gpu:a100:2", "gres:gpu:a100:2", "gres/gpu:a100:2", "gres/gpu:a100=2")
        ),
        pytest.param("gres/gpu:4", {"gpu": {"total": 4, "types": {}}}, id="case 8"),
        pytest.param("gpu", {"gpu": {"total": 1, "types": {}}}, id="case 10"),
        pytest.param("gpu:a100", {"gpu": {"total": 1, "types": {"a100": 1}}}, id="case 10, typed"),
        pytest.param(
            "gpu:tesla_v100-sxm3-32gb:16",
            {"gpu": {"total": 16, "types": {"tesla_v100-sxm3-32gb": 16}}},
            id="case 11",
        ),
        pytest.param("(null)", {}, id="case 13"),
        pytest.param("tmp:844G", {"other": {"tmp": 844 * 2**30}}, id="case 13, not a GPU"),
        pytest.param(
            "gpu:a100:2,shard:20",
            {"gpu": {"total": 2, "types": {"a100": 2}}, "shard": {"total": 20, "types": {}}},
            id="case 14",
        ),
        pytest.param(
            "gpu:kepler:2,bandwidth:lustre:no_consume:4G",
            {"gpu": {"total": 2, "types": {"kepler": 2}}, "other": {"bandwidth:lustre": 4 * 2**30}},
            id="case 16",
        ),
        ("gpu:A100:2,gpu:a100:1", {"gpu": {"total": 3, "types": {"A100": 3}}}),
        (
            "gres/gpu=8,gres/gpu:h100=6,gres/gpu:h100_1g.10gb=2",
            {"gpu": {"total": 6, "types": {"h100": 6}}, "mig": {"total": 2, "types": {"h100_1g.10gb": 2}}},
        ),
        ("gres/mps:100", {"mps": {"total": 100, "types": {}}}),
    ],
)
def test_gres_is_shown_by_unit(text: str, held: dict[str, Any]) -> None:
    """Whole GPUs, slices, shards and the rest apart; types as written; each thing counted once."""
    empty = {"gpu": NOTHING, "mig": NOTHING, "shard": NOTHING, "mps": NOTHING, "other": {}}
    assert _parse("gres", text) == empty | held


@pytest.mark.parametrize(
    ("text", "seconds", "infinite", "unknown"),
    [
        pytest.param("UNLIMITED", None, True, False, id="case 17"),
        pytest.param("Partition_Limit", None, False, True, id="case 18"),
        pytest.param("30:00", 1800, False, False, id="case 19"),
        pytest.param("2-12:30:45", 217_845, False, False, id="case 20"),
        ("60", 3600, False, False),
        ("1-12:00", 129_600, False, False),
        ("2h30m", 9000, False, False),
        ("NOT_SET", None, False, True),
        ("INVALID", None, False, True),
        ("N/A", None, False, True),
    ],
)
def test_time_is_shown_in_seconds(text: str, seconds: int | None, infinite: bool, unknown: bool) -> None:
    """Unset and infinite are different things."""
    assert _parse("time", text) == {"seconds": seconds, "infinite": infinite, "unknown": unknown}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(
            "57829110_[5-100]",
            {"job_id": 57829110, "kind": "array", "tasks": 96, "task_list": "5-100"},
            id="case 25",
        ),
        pytest.param(
            "1234+1", {"job_id": 1234, "kind": "het", "het_offset": 1, "update_id": "1234"}, id="case 26"
        ),
        ("9_[3-9%3]", {"kind": "array", "tasks": 7, "throttle": 3, "update_id": "9_[3-9]"}),
        ("9_[0-9,...]", {"kind": "array", "tasks": 10, "truncated": True, "update_id": "9"}),
        ("12_3", {"kind": "task", "task": 3, "tasks": 1, "update_id": "12_3"}),
        ("12", {"kind": "job", "tasks": None, "throttle": None, "truncated": False, "update_id": "12"}),
    ],
)
def test_job_id_is_shown_in_parts(text: str, parts: dict[str, Any]) -> None:
    """With the id to name in an update."""
    assert _parse("jobid", text).items() >= parts.items()


def test_node_state_is_shown_with_its_flags() -> None:
    """usable is null where it can't be told."""
    assert _parse("nodestate", "MIXED+DRAIN") == {"base": "MIXED", "flags": ["DRAIN"], "usable": False}
    assert _parse("nodestate", "UNKNOWN")["usable"] is None


def test_hints_are_shown_with_their_problems() -> None:
    """What is ignored is named."""
    shown = _parse("hints", "x score: est=20m est=1m")
    assert (shown["est_s"], shown["problems"]) == (1200.0, ["hint 'est=1m' ignored: est was given before"])


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        pytest.param("gres", "cpu=2,mem=512M,node=", "a GRES text that was cut off, got", id="case 12"),
        ("gres", "gpu:a:b:c:2", "can't read the GRES item 'gpu:a:b:c:2'"),
        ("time", "-5", "not a time, got '-5'; 20m, 2h30m"),
        ("time", "soon", "not a time, got 'soon'"),
        ("jobid", "12_[1,3", "not a job id, got '12_[1,3'; 12, 12_3"),
        ("nodestate", "?", "not a node state, got '?'; such as IDLE"),
        ("jobid", "\x1b[31m", "not a job id, got '\\x1b[31m'"),
    ],
)
def test_what_cannot_be_read_is_exit_code_2_with_the_reason(kind: str, text: str, sentence: str) -> None:
    """Nothing on standard output, one sentence on standard error, escaped."""
    result = CliRunner().invoke(main, ["parse", kind, text])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"slurm-score: {sentence}")
    assert result.stderr.count("\n") == 1
