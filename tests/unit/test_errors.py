"""slurm_score/errors.py: exceptions that cross from one process to another."""

import pickle

import pytest

from slurm_score.errors import (
    CommandFailedError,
    ParseError,
    PolicyError,
    Problem,
    ServiceError,
    SlurmScoreError,
    SnapshotError,
)


@pytest.mark.parametrize(
    "error",
    [
        ParseError("no such field", "colour", "there are job, user"),
        PolicyError([Problem("policy.yaml:3", "unknown factor", "'wiat'")]),
        SnapshotError("no snapshot yet"),
        ServiceError("busy", 503),
        CommandFailedError("scontrol: exit 1", argv=["scontrol", "ping"], returncode=1, stderr="down"),
    ],
)
def test_an_exception_survives_the_way_between_processes(error: SlurmScoreError) -> None:
    """With its sentence and its data: else the pool of workers takes its worker for dead."""
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))
