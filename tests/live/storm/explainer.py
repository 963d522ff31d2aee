"""Runs in the controller's container with the product's own Python: `slurm-score explain` of many jobs.

explainer.py OPTIONS: the options of each call; standard input has a job id on each line. One process for
all of them, since starting one for each would take longer than everything that they do.
"""

import sys

from slurm_score.cli import main

if __name__ == "__main__":
    for job_id in sys.stdin.read().split():
        main(["explain", *sys.argv[1:], job_id], standalone_mode=False)
