"""Reading the Standard Workload Format; source: its definition, version 2.2."""

import gzip
from pathlib import Path

import pytest

from slurm_score.errors import SwfError
from slurm_score.sim.swf import parse_swf, read_swf

TEXT = """\
; Version: 2.2
; MaxNodes: 50
; MaxProcs: 100
1 0 -1 97225 56 -1 -1 56 210000 -1 1 7 -1 -1 -1 -1 -1 -1
2 10 -1 60 8 -1 -1 -1 -1 -1 1 3 -1 -1 -1 -1 -1 -1

3 20 -1 90 4 -1 -1 2 60 -1 1 7 -1 -1 -1 -1 -1 -1
"""

JOB = "9 30 -1 60 4 -1 -1 4 120 -1 1 5 -1 -1 -1 -1 -1 -1"


def row(**changes: object) -> str:
    """Return a line of 18 fields, some of them changed by place (f1 to f18)."""
    fields = [
        "9",
        "30",
        "-1",
        "60",
        "4",
        "-1",
        "-1",
        "4",
        "120",
        "-1",
        "1",
        "5",
        "-1",
        "-1",
        "-1",
        "-1",
        "-1",
        "-1",
    ]
    for name, value in changes.items():
        fields[int(name[1:]) - 1] = str(value)
    return " ".join(fields)


def problems(*lines: str) -> list[str]:
    """Return what is wrong with lines."""
    with pytest.raises(SwfError) as error:
        parse_swf(lines, "log.swf", "log")
    return [str(problem) for problem in error.value.problems]


def test_fields_and_header_are_read(tmp_path: Path) -> None:
    """MaxProcs counts, requested processors come before allocated ones, a missing request is the run time."""
    path = tmp_path / "KTH.swf"
    path.write_text(TEXT)
    work = read_swf(path)
    assert (work.name, work.procs_total, work.users) == ("KTH", 100, ("3", "7"))
    assert work.job_id.tolist() == [1, 2, 3]
    assert work.submit_s.tolist() == [0, 10, 20]
    assert work.run_s.tolist() == [97225, 60, 90]
    assert work.procs.tolist() == [56, 8, 2]
    assert work.request_s.tolist() == [210000, 60, 90]
    assert work.user.tolist() == [1, 0, 1]
    assert work.remarks == (f"{path}: 1 jobs ran longer than their request, which is raised to that",)


def test_a_gzipped_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    """Its content says so, whatever its name is."""
    plain, zipped = tmp_path / "log.swf", tmp_path / "log"
    plain.write_text(TEXT)
    zipped.write_bytes(gzip.compress(TEXT.encode()))
    assert read_swf(zipped).run_s.tolist() == read_swf(plain).run_s.tolist()
    assert read_swf(zipped).procs_total == 100


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 2 3", "log.swf:1: not a job, got 3 fields; 18 are expected"),
        (
            row(f4="x"),
            "log.swf:1: field 4 (run time): not a number, got 'x'; a whole number, -1 for unknown",
        ),
        (row(f2=-1), "log.swf:1: field 2 (submit time): unknown, got -1; every job needs one"),
        (row(f9=-7), "log.swf:1: field 9 (requested time): out of range, got -7; from 0, or -1 for unknown"),
        (
            row(f4=1 << 60),
            f"log.swf:1: field 4 (run time): out of range, got {1 << 60}; from 0, or -1 for unknown",
        ),
        ("; MaxProcs: many", "log.swf: header MaxProcs: not a size, got 'many'; a number above 0"),
    ],
)
def test_a_malformed_line_is_named_with_field_and_what_is_expected(line: str, problem: str) -> None:
    """Where, what, what was got, what is allowed."""
    assert problems(line) == [problem]


def test_all_problems_are_told_at_once_up_to_a_limit() -> None:
    """Three bad lines give three problems; a file that is no SWF at all stops at twenty."""
    assert len(problems(row(), "a", row(f1="x"), row(f2="y"))) == 3
    many = problems(*(["not a job"] * 1000))
    assert len(many) == 21
    assert many[-1] == "log.swf: 20 problems so far; the rest is not read"


def test_jobs_that_cannot_run_are_left_out_and_counted() -> None:
    """No run, no processors, more processors than there are."""
    lines = ["; MaxNodes: 10", row(f4=0), row(f4=-1), row(f5=-1, f8=-1), row(f8=11), row(f1=5)]
    work = parse_swf(lines, "log.swf", "log")
    assert work.job_id.tolist() == [5]
    assert work.remarks == (
        "log.swf: 2 jobs never ran and are left out",
        "log.swf: 1 jobs have no processors and are left out",
        "log.swf: 1 jobs ask for more than 10 processors and are left out",
    )


def test_fractions_of_a_second_are_cut_off() -> None:
    """Some logs in the archive have them."""
    assert parse_swf([row(f2="30.9", f4="60.2")], "log.swf", "log").submit_s.tolist() == [30]


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    """Missing, a folder, a broken gzip."""
    broken = tmp_path / "broken.swf.gz"
    broken.write_bytes(gzip.compress(TEXT.encode())[:-20])
    for path in (tmp_path / "gone.swf", tmp_path, broken):
        with pytest.raises(SwfError, match="can't be read"):
            read_swf(path)
