"""slurm_score/report/queue.py: order, marks, weights and the formats for programs, in literal tables."""

import csv
import io
from typing import Any

import pytest

from slurm_score.policy_yaml import parse_policy
from slurm_score.report.fields import (
    DEFAULT,
    LONG,
    NORMALISED,
    Format,
    format_of,
    parse_format,
    parse_names,
    parse_sort,
)
from slurm_score.report.queue import Queue, columns_needed, weights_row
from slurm_score.service.handlers import score_snapshot
from slurm_score.service.listing import ALL, Selection, list_columns
from slurm_score.snapshot import Snapshot
from tests.unit.builders import make_cluster, make_gpu_job, make_job

POLICY = parse_policy(
    "factors: {wait: {weight: 350}, remaining: {weight: 450}, size: {weight: 200}, qos: {weight: 500}, "
    "gres_fit: {weight: 0}}"
)
JOBS = (
    make_job(7, qos="high", time_limit_s=1800.0, cpus=6),
    make_job(10, wait_s=46 * 3600, user="zoë", name="a|b"),
    make_job(9, user="bob", site_factor=158, name='say "hi", twice'),
    make_gpu_job(8, "gpu:v100:1", user="bob", site_factor=None),
)


def queue(shown: Format, sort: str = "", in_force: str = POLICY.hash, wanted: Selection = ALL) -> Queue:
    """Return the four jobs in a format; `in_force` is the policy file's hash."""
    keys = parse_sort(sort) if sort else ()
    scored = score_snapshot(Snapshot(policy=POLICY, cluster=make_cluster(), jobs=JOBS))
    answer: dict[str, Any] = list_columns(scored, columns_needed(shown, keys), wanted)
    return Queue(answer | {"policy_in_force": in_force}, shown, keys)


def test_queue_is_shown_like_sprio_does() -> None:
    """Best first, points for each factor that has a weight, numbers to the right."""
    assert queue(format_of(DEFAULT)).table()[0].splitlines() == [
        "JOBID  PARTITION  USER   SCORE  RANK  WAIT  REMAIN  SIZE  QOS",
        "10     main       zoë     456!     1   298     150     8    0",
        "7      main       alice   775      2     0     225    50  500",
        "8      gpu        bob     175      1     0     150    25    0",
        "9      main       bob     158      3     0     150     8    0",
    ]


def test_normalised_queue_holds_score_and_factors_from_0_to_1() -> None:
    """sprio -n: the priority from 0 to 1 as well; 1,500 is the sum of the weights."""
    assert queue(format_of(NORMALISED)).table(header=False)[0].splitlines()[1] == (
        "7   main  alice  0.5167   2  0.0000  0.5000  0.2500  1.0000"
    )


def test_long_queue_shows_factors_without_weight_too() -> None:
    """-l shows all there is to say."""
    header = queue(format_of(LONG, every=True)).table()[0].splitlines()[0].split()
    assert header == [
        *("JOBID", "PARTITION", "USER", "ACCOUNT", "QOSNAME", "NAME", "SCORE", "RANK", "OF", "GPUTYPE"),
        *("GPURANK", "SITE", "WANTED", "PRIORITY", "WAIT", "REMAIN", "SIZE", "QOS", "GRESFIT"),
        *("PREDICTED", "SOURCE", "POLICY"),
    ]


def test_format_is_printed_as_sprio_prints_it() -> None:
    """sprio(1), -o: a width fills up and cuts names, with a mark here; numbers and ids are never cut."""
    shown = parse_format("%.4i<%3r>%.6s %.2S")
    assert queue(shown).table(80)[0].splitlines() == [
        "JOBID<PA+> SCORE SITE",
        "   10<ma+>   456    0",
        "    7<ma+>   775    0",
        "    8<gpu>   175  N/A",
        "    9<ma+>   158  158",
    ]


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("", "10 7 8 9"),
        ("i", "7 8 9 10"),
        ("-i", "10 9 8 7"),
        ("job", "7 8 9 10"),
        ("r,-i", "8 10 9 7"),
        ("u,s", "7 9 8 10"),
        ("u,-s", "7 8 9 10"),
        ("+S", "10 7 9 8"),
        ("-S", "9 10 7 8"),
        ("-wait", "10 7 8 9"),
        ("K", "8 10 7 9"),
    ],
)
def test_rows_are_sorted_by_the_keys(sort: str, ids: str) -> None:
    """The first key counts most; equal rows stay best first, those without a value come last."""
    rows = queue(format_of(["job"]), sort).table(header=False)[0]
    assert rows.split() == ids.split()


def test_rows_of_an_older_policy_are_marked_and_the_marks_explained() -> None:
    """The policy file has changed and no cycle has scored by it yet."""
    found = queue(
        parse_names("job,score,policy"), in_force="0123456789ab", wanted=Selection(jobs=("10", "9"))
    )
    assert found.table()[0].splitlines() == [
        "JOBID  SCORE  POLICY",
        f"10     456*!  {POLICY.hash}*",
        f"9      158*   {POLICY.hash}*",
    ]
    assert found.legend() == [
        f"* made by policy {POLICY.hash}; the policy file is 0123456789ab now, from the next cycle on",
        "! waits for longer than its guard: above every score",
    ]


def test_marks_are_explained_only_where_there_are_some() -> None:
    """No mark, no legend; none in the formats of programs."""
    assert queue(format_of(DEFAULT), wanted=Selection(jobs=("9",))).legend() == []
    assert queue(format_of(["job", "rank"]), in_force="0123456789ab").legend() == []
    assert "*" not in queue(format_of(DEFAULT), in_force="0123456789ab").parsable()
    assert "*" not in queue(parse_format("%i %s"), in_force="0123456789ab").table()[0]


def test_weights_are_shown_like_sprio_does() -> None:
    """sprio -w: one row, the score column holds the sum; no job is told of."""
    shown, none = format_of(DEFAULT), Selection(limit=0)
    scored = score_snapshot(Snapshot(policy=POLICY, cluster=make_cluster(), jobs=JOBS))
    answer = list_columns(scored, columns_needed(shown), none) | {"policy_in_force": POLICY.hash}
    assert weights_row(answer, shown).table()[0].splitlines() == [
        "JOBID    PARTITION  USER  SCORE  RANK  WAIT  REMAIN  SIZE  QOS",
        "Weights                    1500         350     450   200  500",
    ]
    assert weights_row(answer, parse_format("%.8i %.6w %.6W %.5S")).table()[0].splitlines() == [
        "   JOBID   WAIT   WAIT  SITE",
        " Weights    350    350     1",
    ]


def test_parsable_rows_have_a_bar_between_the_fields() -> None:
    """sacct -P; case 28: a bar within a name would move the columns, so it becomes a question mark."""
    shown = parse_names("job,name,score,site_held,gpu_type")
    assert queue(shown).parsable().splitlines() == [
        "JOBID|NAME|SCORE|SITE|GPUTYPE",
        "10|a?b|456|0|",
        "7||775|0|",
        "8||175||v100",
        '9|say "hi", twice|158|158|',
    ]
    assert queue(shown).parsable(header=False).splitlines()[0] == "10|a?b|456|0|"


def test_csv_can_be_read_back() -> None:
    """RFC 4180: commas and quotes survive."""
    rows = list(csv.reader(io.StringIO(queue(parse_names("job,name,user")).csv())))
    assert rows == [
        ["JOBID", "NAME", "USER"],
        ["10", "a|b", "zoë"],
        ["7", "", "alice"],
        ["8", "", "bob"],
        ["9", 'say "hi", twice', "bob"],
    ]


def test_empty_queue_is_a_header() -> None:
    """Nothing waits; the columns are still named."""
    found = queue(format_of(DEFAULT), wanted=Selection(limit=0))
    assert found.table() == ("JOBID  PARTITION  USER  SCORE  RANK  WAIT  REMAIN  SIZE  QOS\n", [])
    assert found.table(header=False) == ("", [])
    assert found.summary() == f"0 jobs; cluster test, mode observe, policy {POLICY.hash}"
