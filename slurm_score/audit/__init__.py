"""What the reprioritizer decided and why, in an SQLite file: for each cycle a row, for each policy its text.

Not one row a job and cycle: a job gets a row when an update was sent for it, and when the reason why
none was sent has changed. What was decided last is looked up in the file after a restart, so that a
restart adds nothing. In observe and advise a job has one row, "mode is observe", however often the
number that it would get changes.

A row takes 120 bytes with its index. A busy queue of 20,000 jobs, with a cycle a minute, 165 updates a
cycle and 30,000 submissions a day, makes 270,000 rows or 32 MB a day, so 1 GB in the 30 days that are
kept; where a tenth of that happens it is 100 MB. What is older is deleted a few thousand rows a cycle,
and the file shrinks.

The file is opened for each cycle and closed after it: one that an admin moved away is made anew, and
readers (read.py), which may not write, find it whole.
"""

from slurm_score.audit.contention import read_contention
from slurm_score.audit.decisions import Decision, Outcome, decisions
from slurm_score.audit.read import StoredCycle, StoredDecision, read_cycles, read_history
from slurm_score.audit.trail import AuditTrail, CycleRecord

__all__ = [
    "AuditTrail",
    "CycleRecord",
    "Decision",
    "Outcome",
    "StoredCycle",
    "StoredDecision",
    "decisions",
    "read_contention",
    "read_cycles",
    "read_history",
]
