"""An explanation as text: the formula in words, then with numbers, the terms, the result."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_score.report.table import printable


def format_explanation(answer: Mapping[str, Any]) -> str:
    """Return one job's explanation as text; `answer` is what the service says at /v1/jobs/ID."""
    return "".join(f"{printable(line)}\n" for line in _lines(answer))


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    terms = answer["terms"]
    yield f"Job {answer['job']} of {answer['user']}, partition {answer['partition']}, QOS {answer['qos']}"
    yield ""
    yield "score = sum of weight x factor over " + ", ".join(term["name"] for term in terms)
    yield "      = " + " + ".join(f"{term['weight']} x {term['factor']:.4f}" for term in terms)
    yield "      = " + " + ".join(f"{term['part']:.1f}" for term in terms)
    yield f"      = {answer['score']:.1f}"
    yield ""
    for term in terms:
        details = ", ".join(f"{name} {value:.2f}" for name, value in term["details"].items())
        yield f"{term['name']:<10} {term['part']:>7.1f}  {term['words']}" + (
            f" ({details})" if details else ""
        )
    yield ""
    if answer["guard"]:
        yield f"Guard: {answer['guard']}."
    yield from _result(answer)
    yield f"Policy {answer['policy_hash']}."


def _result(answer: Mapping[str, Any]) -> Iterator[str]:
    held = "a SiteFactor that Slurm doesn't tell" if answer["site_held"] is None else answer["site_held"]
    if answer["untouched"]:
        yield f"Left alone: {answer['untouched']}; the policy would give it {answer['site_wanted']}."
    else:
        yield f"SiteFactor wanted {answer['site_wanted']}, Slurm holds {held}."
    if answer["blocker"]:
        yield f"What it waits for is not the score: {answer['blocker']}."
    else:
        yield f"It is number {answer['rank']} of {answer['of']} in its partition."
