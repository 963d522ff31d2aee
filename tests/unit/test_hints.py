"""slurm_score/hints.py: what users say in --comment."""

import pytest

from slurm_score.hints import _KEYS, NO_HINTS, Hints, parse_hints

KNOWN = "(known: est, left, progress, ckpt, gpu, vram, urgency, deadline)"


@pytest.mark.parametrize(
    ("comment", "hints"),
    [
        ("score: est=20m", Hints(est_s=1200.0)),
        ("score:est=20m", Hints(est_s=1200.0)),
        ("SCORE: EST=20m", Hints(est_s=1200.0)),
        ("score: left=1-12:00", Hints(left_s=129_600.0)),
        ("score: est=2h30m left=30:00", Hints(est_s=9000.0, left_s=1800.0)),
        ("score: est=2h, left=1h", Hints(est_s=7200.0, left_s=3600.0)),
        ("run 7; score: est=20m; nothing=here", Hints(est_s=1200.0)),
        ("run 7,score: est=20m\nnext line: x=1", Hints(est_s=1200.0)),
        ("first line\nscore: est=20m", Hints(est_s=1200.0)),
        ("score: progress=40%", Hints(progress=0.4)),
        ("score: progress=0", Hints(progress=0.0)),
        ("score: progress=12.5", Hints(progress=0.125)),
        ("score: ckpt=yes", Hints(ckpt=True)),
        ("score: ckpt=NO", Hints(ckpt=False)),
        ("score: gpu=A100|h100", Hints(gpu=("a100", "h100"))),
        ("score: gpu=tesla_v100-sxm3-32gb", Hints(gpu=("tesla_v100-sxm3-32gb",))),
        ("score: vram=40", Hints(vram_gib=40.0)),
        ("score: vram=79.5GiB", Hints(vram_gib=79.5)),
        ("score: urgency=High", Hints(urgency="high")),
        ("score: deadline=2026-12-24", Hints(deadline="2026-12-24")),
        ("score: deadline=2026-12-24t18:00", Hints(deadline="2026-12-24T18:00")),
    ],
)
def test_hints_stand_behind_score(comment: str, hints: Hints) -> None:
    """From `score:` up to a semicolon or the end of the line; the rest of the comment is the user's own."""
    assert parse_hints(comment) == hints


@pytest.mark.parametrize(
    "comment",
    [
        *(
            "",
            "(null)",
            "est=20m",
            "highscore: est=20m",
            "score est=20m",
            "scores: est=20m",
            "score:",
            "score: ;",
        ),
        *("score:\nplease est=1", "x" * 1024 + " score: est=20m"),
        pytest.param("x'; touch /tmp/pwn; echo '", id="case 29, shell"),
        pytest.param('{"a":"b;c"}', id="case 29, JSON"),
    ],
)
def test_comment_without_hints_is_nobodys_business(comment: str) -> None:
    """No hint, no problem: most comments are not for us, and only the first 1,024 characters count."""
    assert parse_hints(comment) == NO_HINTS


@pytest.mark.parametrize(
    ("comment", "problem"),
    [
        ("score: fast", "hint 'fast' ignored: not key=value"),
        (
            "score: ets=20m",
            f"hint 'ets' ignored: unknown, did you mean 'est'? {KNOWN}",
        ),
        (
            "score: x=20m",
            f"hint 'x' ignored: unknown {KNOWN}",
        ),
        ("score: est=", "hint 'est=' ignored: not a duration such as 20m, 2h30m or 1-12:00"),
        ("score: est=soon", "hint 'est=soon' ignored: not a duration such as 20m, 2h30m or 1-12:00"),
        ("score: est=0", "hint 'est=0' ignored: not a duration such as 20m, 2h30m or 1-12:00"),
        ("score: est=-5", "hint 'est=-5' ignored: not a duration such as 20m, 2h30m or 1-12:00"),
        ("score: progress=101", "hint 'progress=101' ignored: not a percentage from 0 to 100"),
        ("score: progress=-1", "hint 'progress=-1' ignored: not a percentage from 0 to 100"),
        ("score: progress=nan", "hint 'progress=nan' ignored: not a percentage from 0 to 100"),
        ("score: ckpt=1", "hint 'ckpt=1' ignored: not yes or no"),
        ("score: gpu=", "hint 'gpu=' ignored: not GPU types such as a100|h100"),
        ("score: gpu=a100|", "hint 'gpu=a100|' ignored: not GPU types such as a100|h100"),
        ("score: gpu=$(id)", "hint 'gpu=$(id)' ignored: not GPU types such as a100|h100"),
        ("score: vram=0", "hint 'vram=0' ignored: not GiB for each GPU, such as 40"),
        ("score: vram=1e3", "hint 'vram=1e3' ignored: not GiB for each GPU, such as 40"),
        ("score: urgency=max", "hint 'urgency=max' ignored: not low, normal or high"),
        ("score: deadline=soon", "hint 'deadline=soon' ignored: not a time such as 2026-12-24T18:00"),
        (
            "score: deadline=2026-13-01",
            "hint 'deadline=2026-13-01' ignored: not a time such as 2026-12-24T18:00",
        ),
        ("score: a\x1b[31m", "hint 'a\\x1b[31m' ignored: not key=value"),
        ("score: é\u202e", "hint '\\xe9\\u202e' ignored: not key=value"),
    ],
)
def test_ignored_hint_is_named_to_the_user(comment: str, problem: str) -> None:
    """One sentence says which hint and why; nothing in it can steer a terminal."""
    assert parse_hints(comment) == Hints(problems=(problem,))


def test_second_hint_of_one_kind_is_ignored() -> None:
    """The first one counts, and the user hears of the second."""
    assert parse_hints("score: est=20m est=1m") == Hints(
        est_s=1200.0, problems=("hint 'est=1m' ignored: est was given before",)
    )


def test_good_hint_counts_beside_a_bad_one() -> None:
    """A hint can only help: a bad one spoils no other."""
    assert parse_hints("score: fast est=20m") == Hints(
        est_s=1200.0, problems=("hint 'fast' ignored: not key=value",)
    )


def test_at_most_three_problems_are_told() -> None:
    """A long comment doesn't fill the user's terminal."""
    assert len(parse_hints("score: " + "a b c d e f g " * 20).problems) == 3


def test_the_same_problem_is_told_once() -> None:
    """Unknown keys and bad values are named once, and at most three of them."""
    assert parse_hints("score: x y x z w").problems == tuple(
        f"hint '{word}' ignored: not key=value" for word in ("x", "y", "z")
    )


def test_every_hint_has_a_key() -> None:
    """What Hints holds can be said, and nothing else can."""
    assert {field for field, _, _ in _KEYS.values()} | {"problems"} == set(Hints.__dataclass_fields__)
