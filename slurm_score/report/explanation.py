"""An explanation as text: the formula in words, then with numbers, the terms, the result, what would help."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_score.report.table import printable
from slurm_score.units import format_duration

Answer = Mapping[str, Any]


def format_explanation(answer: Answer) -> str:
    """Return one job's explanation as text; `answer` is what the service says at /v1/jobs/ID."""
    parts = (_formula(answer), _terms(answer["terms"]), _site(answer), _place(answer), _changes(answer))
    blocks = ("\n".join(map(printable, lines)) for part in parts if (lines := list(part)))
    head = f"Job {answer['job']} of {answer['user']}, partition {answer['partition']}, QOS {answer['qos']}"
    age_s = answer.get("age_s")
    seen = "" if age_s is None else f", as the cycle saw it {format_duration(age_s)} ago"
    return "\n\n".join((printable(head), *blocks, f"Policy {answer['policy_hash']}{seen}.")) + "\n"


def _formula(answer: Answer) -> Iterator[str]:
    terms = answer["terms"]
    yield "score = sum of weight x factor over " + ", ".join(term["name"] for term in terms)
    yield "      = " + " + ".join(f"{term['weight']} x {term['factor']:.4f}" for term in terms)
    yield "      = " + " + ".join(f"{term['part']:.1f}" for term in terms)
    yield f"      = {answer['score']:.1f}"


def _terms(terms: Sequence[Answer]) -> Iterator[str]:
    for term in terms:
        details = ", ".join(f"{name} {value:.2f}" for name, value in term["details"].items())
        also = f" ({details})" if any(term["details"].values()) else ""
        yield f"{term['name']:<10} {term['part']:>7.1f} {term['share']:>5.0%}  {term['words']}{also}"


def _site(answer: Answer) -> Iterator[str]:
    """Yield how score or guard make the SiteFactor, and what Slurm makes of that."""
    held, wanted = answer["site_held"], answer["site_wanted"]
    if answer["guard"]:
        yield f"Guard: {answer['guard']}."
        sum_ = (
            f"{answer['points']:.1f} minutes past the guard + {answer['offset']:.1f} where that tier begins"
        )
    else:
        sum_ = f"{answer['score']:.1f} + {answer['offset']:.1f} that all jobs share"
    holds = "a SiteFactor that Slurm doesn't tell" if held is None else held
    if answer["untouched"]:
        yield f"Left alone: {answer['untouched']}; the policy would give it {wanted} = {sum_}, rounded."
    else:
        yield f"SiteFactor wanted {wanted} = {sum_}, rounded; Slurm holds {holds}."
    if held is not None and answer["slurm_parts"]:
        yield f"Slurm's priority {answer['priority']} = SiteFactor {held}{_slurms_own(answer)}."


def _slurms_own(answer: Answer) -> str:
    """Return Slurm's own parts as a sum; sprio rounds each, so that it may miss the priority by a little."""
    parts = {name: -value if name == "nice" else value for name, value in answer["slurm_parts"].items()}
    said = "".join(
        f" {'+' if value > 0 else '-'} {name} {abs(value)}" for name, value in parts.items() if value
    )
    rounded = answer["site_held"] + sum(parts.values()) != answer["priority"]
    return f"{said}, each rounded by Slurm" if rounded and said else said


def _place(answer: Answer) -> Iterator[str]:
    if answer["blocker"]:
        yield f"What it waits for is not the score: {answer['blocker']}."
    for obstacle in answer["obstacles"]:
        yield f"Beside its score: {obstacle}."
    for standing in answer["standings"]:
        yield f"It is {in_words(standing)}."
    if not answer["blocker"]:
        yield f"Slurm's reason: {answer['reason']}."


def in_words(standing: Answer) -> str:
    """Return a standing such as `7th of 41 for h100 in main; 38 GPUs ahead`."""
    types = standing["types"]
    wants = f" for {'|'.join(types)}" if types else ""
    ahead = f"; {standing['gpus_ahead']} GPUs ahead" if types else ""
    return f"{ordinal(standing['rank'])} of {standing['of']}{wants} in {standing['partition']}{ahead}"


def ordinal(n: int) -> str:
    """Return a place in English: 1st, 2nd, 3rd, 11th."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _changes(answer: Answer) -> Iterator[str]:
    if answer["changes"]:
        yield "What would change it:"
    for change in answer["changes"]:
        yield f"  {change['words']}: {' and '.join(change['helps'])}"
        stands = ", ".join(in_words(standing) for standing in change["standings"])
        about = "" if change["exact"] else "about "
        yield f"    score {about}{change['score']:.1f} ({change['gain']:+.1f}), {_ranks(change)}: {stands}"
        if change["update"]:
            yield f"    {change['update']}"
            anew = f"score {about}{change['resubmitted']:.1f}, without the wait so far"
            yield f"    or submit it anew with {change['options']}: {anew}"
        else:
            yield f"    submit it anew with {change['options']}; the wait so far is lost"


def _ranks(change: Answer) -> str:
    gained = change["ranks_gained"]
    if not gained:
        return "same rank"
    plural = "" if abs(gained) == 1 else "s"
    return f"{abs(gained)} rank{plural} {'forward' if gained > 0 else 'back'}"
