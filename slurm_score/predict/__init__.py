"""How long jobs will run, learned from the runs that ended. README.md has the decisions."""
