"""slurm_score/report: tables like sprio's, and explanations, as text."""

from typing import Any

import pytest

from slurm_score.policy import Policy
from slurm_score.report.explanation import format_explanation
from slurm_score.report.table import format_queue, format_table, format_weights
from slurm_score.service.handlers import explain, list_jobs, score_snapshot
from slurm_score.snapshot import Snapshot
from tests.unit.builders import make_cluster, make_job

JOBS = (
    make_job(7, qos="high", time_limit_s=1800.0, cpus=6),
    make_job(8, wait_s=27 * 3600, user="zoë"),
    make_job(9, eligible_s=None, reason="Dependency", dependency="afterok:7"),
)


def answer() -> dict[str, Any]:
    """Return what the service says about the three jobs."""
    return list_jobs(score_snapshot(Snapshot(policy=Policy(), cluster=make_cluster(), jobs=JOBS)))


def explained(i: int) -> dict[str, Any]:
    """Return what the service explains of one of them."""
    return explain(score_snapshot(Snapshot(policy=Policy(), cluster=make_cluster(), jobs=JOBS)), i)


def test_queue_is_shown_like_sprio_does() -> None:
    """Best first, points for each factor, numbers to the right; who can't start yet is left out."""
    assert format_queue(answer()).splitlines() == [
        "JOBID  PARTITION  USER   SCORE  WAIT  REMAIN  SIZE  QOS  GRESFIT",
        "7      main       alice    775     0     225    50  500        0",
        "8      main       zoë      333   175     150     8    0        0",
    ]


def test_weights_are_shown_like_sprio_does() -> None:
    """sprio -w: one row, the score column holds the sum."""
    assert format_weights(answer()).splitlines() == [
        "JOBID    PARTITION  USER  SCORE  WAIT  REMAIN  SIZE  QOS  GRESFIT",
        "Weights                    1600   350     450   200  500      100",
    ]


def test_queue_can_be_shown_in_the_order_that_slurm_held() -> None:
    """By priority, ties by submit time: what the scores would change stands beside it."""
    told = answer()
    told["jobs"][0] |= {"priority": 1}
    told["jobs"][1] |= {"priority": 900}
    lines = format_queue(told, by_priority=True).splitlines()
    assert [line.split()[0] for line in lines] == ["JOBID", "8", "7"]


def test_empty_queue_is_a_header() -> None:
    """Nothing waits; the columns are still named."""
    assert format_queue(answer() | {"jobs": []}).splitlines() == [
        "JOBID  PARTITION  USER  SCORE  WAIT  REMAIN  SIZE  QOS  GRESFIT"
    ]


def test_wide_characters_keep_the_columns() -> None:
    """A Chinese or Korean character is two columns wide."""
    assert format_table(["USER", "SCORE"], [["日本語", 1], ["bob", 22]]).splitlines() == [
        "USER    SCORE",
        "日本語      1",
        "bob        22",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mb", "a?[31mb"),
        ("a\nb", "a?b"),
        ("a\tb\r", "a?b?"),
        ("a\x9bb\x07", "a?b?"),
        ("a\u202eb\u200b", "a?b?"),
        ("a\ud800b", "a?b"),
        ("[red]a[/red]", "[red]a[/red]"),
        (":smile:", ":smile:"),
        ("a\\b", "a\\b"),
    ],
)
def test_no_name_can_steer_the_terminal(name: str, shown: str) -> None:
    """Control characters become question marks, markup is text."""
    assert format_table(["NAME", "N"], [[name, 1]]).splitlines()[1].split("  ")[0].rstrip() == shown


def test_long_value_is_not_cut() -> None:
    """A table is as wide as it needs to be: a cut job id is another job's."""
    name = "x" * 200
    assert format_table(["JOBID", "USER"], [[name, "bob"]]).splitlines()[1] == f"{name}  bob"


def test_explanation_is_the_formula_in_words_then_in_numbers() -> None:
    """Words, numbers, terms, result: each line adds up to the next."""
    assert (
        format_explanation(explained(0))
        == f"""\
Job 7 of alice, partition main, QOS high

score = sum of weight x factor over wait, remaining, size, qos, gres_fit
      = 350 x 0.0000 + 450 x 0.5000 + 200 x 0.2500 + 500 x 1.0000 + 100 x 0.0000
      = 0.0 + 225.0 + 50.0 + 500.0 + 0.0
      = 775.0

wait           0.0  has waited 00:00:00 of 2-06:00:00
remaining    225.0  00:30:00 to run by its time limit; one half at 00:30:00
size          50.0  asks for 6 of the 24 CPUs of its partition
qos          500.0  QOS high has priority 1000 of at most 1000
gres_fit       0.0  asks for no GPU (scarcity 0.00, ready 0.00, match 0.00, packing 0.00, spread 0.00)

SiteFactor wanted 775, Slurm holds 0.
It is number 1 of 2 in its partition.
Policy {Policy().hash}.
"""
    )


def test_explanation_of_a_blocked_job_says_what_it_waits_for() -> None:
    """Not its place in the queue, which doesn't matter yet."""
    assert format_explanation(explained(2)).splitlines()[-3:] == [
        "SiteFactor wanted 158, Slurm holds 0.",
        "What it waits for is not the score: it waits for another job (afterok:7): Dependency.",
        f"Policy {Policy().hash}.",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"untouched": "pinned"}, "Left alone: pinned; the policy would give it 775."),
        ({"site_held": None}, "SiteFactor wanted 775, Slurm holds a SiteFactor that Slurm doesn't tell."),
        (
            {"guard": "it has waited longer than 1-21:00:00: above every score, in order of wait"},
            "Guard: it has waited longer than 1-21:00:00: above every score, in order of wait.",
        ),
    ],
)
def test_explanation_tells_what_overrules_the_score(changes: dict[str, Any], line: str) -> None:
    """Pins, the guard, and what Slurm doesn't tell."""
    assert line in format_explanation(explained(0) | changes).splitlines()


def test_a_table_has_no_colour_even_where_it_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR is for terminals; the table is text."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert format_table(["JOBID"], [["1"]]) == "JOBID\n1\n"


def test_a_wide_row_is_not_cut() -> None:
    """Nothing is lost where a name is long."""
    assert "x" * 2000 in format_table(["USER"], [["x" * 2000]])
