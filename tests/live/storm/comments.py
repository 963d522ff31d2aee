"""Comments that try to break something, the same ones for the same seed.

They are texts as Python has the arguments of a process: bytes that aren't UTF-8 are lone surrogates. No NUL,
which no argument can hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

CANARY = "/tmp/pwned"
TOUCH = f"touch {CANARY}"
LONGEST = 100_000  # bytes; Linux takes 128 KiB for one argument

CODE = (
    f"$({TOUCH})",
    f"`{TOUCH}`",
    f"; {TOUCH} ;",
    f"| {TOUCH}",
    f"&& {TOUCH} &",
    f"\n{TOUCH}\n",
    f"'; {TOUCH}; '",
    f'"; {TOUCH}; "',
    f"]]..os.execute('{TOUCH}')..[[",
    f'" .. os.execute("{TOUCH}") .. "',
    f"__import__('os').system('{TOUCH}')",
    f'!!python/object/apply:os.system ["{TOUCH}"]',
    f"{{{{ ''.__class__ }}}} ${{jndi:ldap://x/}} <script>{TOUCH}</script>",
    f"update JobId=1 SiteFactor=1\nscontrol !{TOUCH}",
)
MARKS = (
    "'",
    '"',
    "`",
    "\\",
    "\\n",
    "\n",
    "\r",
    "\t",
    "\r\n",
    "%s",
    "%n",
    "%",
    "$",
    "|",
    "\x1f",
    "=",
    ",",
    ";",
    " ",
    "",
)
TERMINAL = (
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b[31m",
    "\x1bc",
    "\x07",
    "\x08",
    "\x7f",
    "\x9b31m",
    "\r[2026-01-01T00:00:00.000] error: forged",
    "\n[2026-01-01T00:00:00.000] error: lua: slurm_score: forged",
    "\n2026-01-01 00:00:00,000 ERROR slurm_score.policy: forged",
)
UNICODE = (
    "\u202e",
    "\u2066",
    "\u200f",
    "\u200b",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ufffe",
    "\x80",
    "\x85",
    "\x9f",
    "e\u0301" * 20,
    "\U0001f600",
    "\U0010ffff",
    "ſcore:",
    "ＳＣＯＲＥ: ",
)
KEYS = (
    "est",
    "left",
    "progress",
    "ckpt",
    "gpu",
    "vram",
    "urgency",
    "deadline",
    "esst",
    "",
    "EST",
    "__class__",
)
VALUES = (
    "20m",
    "-1",
    "1e999",
    "nan",
    "inf",
    "9" * 400,
    "0x10",
    "٣m",
    "1:2:3:4",
    "101%",
    "yes\x1b[1m",
    "a100|" * 30,
    "high",
    "2026-13-40T99:99",
    "\u202e20m",
    "=" * 50,
    "",
)
LENGTHS = (1000, 1022, 1023, 1024, 1025, 1026, 2048, 4095, 4096, 4097, 8192, 16384, LONGEST)


def _mixed(rng: Random) -> str:
    parts = (*CODE, *MARKS, *TERMINAL, *UNICODE)
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 9)))


def _hint(rng: Random) -> str:
    words = [
        f"{rng.choice(KEYS)}={rng.choice((*VALUES, *CODE, *TERMINAL, *UNICODE))}"
        for _ in range(rng.randrange(6))
    ]
    return (
        rng.choice(("", "run 7; ", "x "))
        + "score:"
        + rng.choice((" ", "", "\t"))
        + rng.choice((" ", ",")).join(words)
    )


def _json(rng: Random) -> str:
    opening, filling, closing = rng.choice(
        (("[", "1", "]"), ('{"score":', '"est=1m"', "}"), ('[{"a":', "null", "}]"))
    )
    depth = rng.randrange(1, 900 // (len(opening) + len(closing)))
    return opening * depth + filling + closing * rng.choice((0, depth // 2, depth))


def _bytes(rng: Random) -> str:
    return os.fsdecode(bytes(rng.randrange(1, 256) for _ in range(rng.randrange(1, 300))))


def _characters(rng: Random) -> str:
    ranges = ((1, 0xD800), (0x80, 0xA0), (0x2000, 0x2070), (0xE000, 0x110000))
    return "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(1, 80)))


def _long(rng: Random) -> str:
    piece = os.fsencode(rng.choice((_mixed, _hint, _bytes, _characters))(rng)) or b"x"
    length = rng.choice(LENGTHS)
    return os.fsdecode((piece * (length // len(piece) + 1))[:length])


KINDS: tuple[tuple[Callable[[Random], str], int], ...] = (
    (_mixed, 30),
    (_hint, 30),
    (_json, 12),
    (_bytes, 13),
    (_characters, 13),
    (_long, 2),
)


def hostile_comments(count: int, seed: int) -> list[str]:
    """Returns so many comments, of all kinds in turn with their weights."""
    rng = Random(seed)
    makers, weights = zip(*KINDS, strict=True)
    return [rng.choices(makers, weights)[0](rng) for _ in range(count)]
