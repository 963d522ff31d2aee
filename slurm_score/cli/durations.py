"""Durations on the command line."""

import click

from slurm_score.errors import ParseError
from slurm_score.units import parse_duration


class DurationType(click.ParamType[float]):
    """A duration such as 60s or 5m, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        try:
            return value if isinstance(value, float) else parse_duration(str(value))
        except ParseError as error:
            self.fail(str(error), param, ctx)
