"""slurm_score/slurm/parse.py: what scontrol says of updates; jobs are in test_parse_jobs.py."""

import pytest

from slurm_score.slurm.parse import parse_update_failures


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Invalid job id specified for job 98765", ("98765", "Invalid job id specified")),
        ("1_3: Invalid job id specified", ("1_3", "Invalid job id specified")),
        ("9_3-9: Invalid user id", ("9_3-9", "Invalid user id")),
        ("9_3-5,7: Invalid user id", ("9_3-5,7", "Invalid user id")),
        ("9_[3-9]: Job has already finished", ("9_[3-9]", "Job has already finished")),
        ("Access/permission denied for job 4", ("4", "Access/permission denied")),
        ("Job is in held state for job 9_[3-9]", ("9_[3-9]", "Job is in held state")),
        (
            "Unable to contact slurm controller (connect failure)",
            ("", "Unable to contact slurm controller (connect failure)"),
        ),
    ],
)
def test_failed_update_names_its_job(text: str, failure: tuple[str, str]) -> None:
    """scontrol goes on after a failure and exits with 1: each line of stderr tells of one job."""
    assert list(parse_update_failures(text + "\n")) == [failure]


def test_every_failed_update_is_told() -> None:
    """Blank lines between them are no failures."""
    text = "\nA for job 1\n\nB for job 2\n1_3: C\n"
    assert list(parse_update_failures(text)) == [("1", "A"), ("2", "B"), ("1_3", "C")]
