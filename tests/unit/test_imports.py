"""DESIGN's arrow, read from the imports themselves: dependencies point one way, the core stays pure."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "slurm_score"
ARROW = (
    (
        "errors",
        "units",
        "gres",
        "node_gres",
        "gpu_types",
        "jobid",
        "hints",
        "hosts",
        "nodestate",
        "constraint",
    ),
    ("slurm_config", "model"),
    ("request", "columns", "inventory", "placement", "contention", "never", "supply"),
    ("factors", "settings", "conditions"),
    ("policy", "policy_yaml"),
    ("score", "profiles"),
    (
        "plan",
        "explain",
        "standing",
        "obstacles",
        "changes",
        "counterfactual",
        "ranks",
        "whatif",
        "advice",
        "tuning",
        "tuning_scheduler",
        "tuning_weights",
    ),
    (
        "predict",
        "figures",
        "slurm",
        "service",
        "snapshot",
        "audit",
        "watch",
        "lock",
        "zone",
        "users",
        "hookfile",
        "sim",
    ),
    ("suitability", "run_times", "pace", "brakes", "burst", "duty", "reprioritizer", "loop"),
    ("checks", "status", "report"),
    ("gather",),
    ("demo", "cli"),
)
"""Parts of the package from left to right: each imports its own group and those to the left of it."""

PURE = frozenset(part for group in ARROW[:7] for part in group) | {
    "suitability",
    "checks",
    "pace",
    "figures",
    "status",
}
WORLDLY = frozenset(
    Path("sim", name) for name in ("inputs.py", "jit.py", "report.py", "swf.py", "table.py", "traces.py")
)
"""The files of the simulator that know of files or of the user's folders; all others are pure."""
PURE_FILES = frozenset(
    Path("predict", f"{name}.py")
    for name in (
        "interface",
        "baselines",
        "runs",
        "opinions",
        "similar",
        "claims",
        "kinds",
        "estimator",
        "replay",
    )
) | {Path("predict", "sources.py")}
"""Pure files among others that aren't: all of predict but its store."""

IMPURE = frozenset({"datetime", "os", "pathlib", "random", "secrets", "socket", "subprocess", "time"})
ENDINGS = frozenset(
    {"print", "sys.stdout.write", "click.echo", "exit", "quit", "sys.exit", "os._exit", "SystemExit"}
)
PLACE = {part: place for place, group in enumerate(ARROW) for part in group}


def faults(package: Path) -> list[str]:
    """Return `file:line: what is wrong` for everything in a package that breaks a rule."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        part = name.parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        if part not in PLACE:
            found.append(f"{name}:1: {part} has no place in the arrow")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for line, module in imports(tree, package.name, name):
            wrong = import_fault(part, name, module, package.name)
            if wrong:
                found.append(f"{name}:{line}: {wrong}")
        if part != "cli":
            found += [f"{name}:{line}: {call} outside cli" for line, call in endings(tree)]
    return found


def imports(tree: ast.AST, package: str, name: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of every module that is imported, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = (package, *name.parent.parts)
            base = ".".join(above[: len(above) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def import_fault(part: str, name: Path, module: str, package: str) -> str:
    """Return what is wrong with one import, empty if nothing is."""
    top, _, rest = module.partition(".")
    if top == package:
        other = rest.partition(".")[0]
        if PLACE.get(other, 0) > PLACE[part]:
            return f"{part} imports {other}, which stands to its right"
    elif top in IMPURE and (part in PURE or name in PURE_FILES or (part == "sim" and name not in WORLDLY)):
        return f"{part} imports {top}: time, chance and the world are arguments here"
    elif top == "subprocess" and name != Path("slurm", "commands.py"):
        return "subprocess outside slurm/commands.py"
    return ""


def endings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every call that prints or exits."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            if call in ENDINGS:
                yield node.lineno, call


def test_dependencies_point_one_way() -> None:
    """errors, units, … → model → … → demo, cli; the core is pure; only cli prints and exits."""
    assert faults(PACKAGE) == []


def test_every_pure_part_is_there() -> None:
    """A part that was renamed would silently no longer be checked."""
    there = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    assert there >= {"errors", "units", "gres", "jobid", "hints", "model", "inventory", "factors"}
    assert there >= {"policy", "score", "plan", "explain"}
    assert all((PACKAGE / path).is_file() for path in PURE_FILES)


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("units.py", "from slurm_score.gres import x", ""),
        ("model.py", "from slurm_score.gres import x", ""),
        (
            "gres.py",
            "\nfrom slurm_score.model import x",
            "gres.py:2: gres imports model, which stands to its right",
        ),
        ("gres.py", "import slurm_score.plan", "gres.py:1: gres imports plan, which stands to its right"),
        (
            "score.py",
            "from slurm_score import plan",
            "score.py:1: score imports plan, which stands to its right",
        ),
        ("plan.py", "from slurm_score import __version__", ""),
        (
            "factors/wait.py",
            "def f():\n    from slurm_score.policy import Policy",
            "factors/wait.py:2: factors imports policy, which stands to its right",
        ),
        (
            "factors/wait.py",
            "from ..score import x",
            "factors/wait.py:1: factors imports score, which stands to its right",
        ),
        ("factors/wait.py", "from .registry import x", ""),
        ("slurm/parse.py", "from slurm_score.snapshot import x", ""),
        (
            "slurm/parse.py",
            "from slurm_score.suitability import x",
            "slurm/parse.py:1: slurm imports suitability, which stands to its right",
        ),
        ("suitability.py", "from slurm_score.slurm.gateway import x", ""),
        (
            "explain.py",
            "from datetime import datetime",
            "explain.py:1: explain imports datetime: time, chance and the world are arguments here",
        ),
        (
            "hints.py",
            "import os.path",
            "hints.py:1: hints imports os: time, chance and the world are arguments here",
        ),
        (
            "sim/engine.py",
            "import time",
            "sim/engine.py:1: sim imports time: time, chance and the world are arguments here",
        ),
        ("sim/swf.py", "from pathlib import Path", ""),
        ("snapshot.py", "import os", ""),
        ("predict/store.py", "import os", ""),
        (
            "predict/similar.py",
            "import random",
            "predict/similar.py:1: predict imports random: time, chance and the world are arguments here",
        ),
        ("watch.py", "import subprocess", "watch.py:1: subprocess outside slurm/commands.py"),
        ("slurm/fake.py", "import subprocess", "slurm/fake.py:1: subprocess outside slurm/commands.py"),
        ("slurm/commands.py", "import subprocess", ""),
        ("report/table.py", "print(1)", "report/table.py:1: print outside cli"),
        ("watch.py", "import sys\nsys.exit(1)", "watch.py:2: sys.exit outside cli"),
        ("cli/demo.py", "import sys\nprint(1)\nsys.exit(1)", ""),
        ("colour.py", "", "colour.py:1: colour has no place in the arrow"),
    ],
)
def test_check_finds_what_breaks_a_rule(tmp_path: Path, file: str, text: str, fault: str) -> None:
    """The check can fail: each wrong line of a small tree is found with its place, each right one passes."""
    path = tmp_path / "slurm_score" / file
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n", encoding="utf-8")
    assert faults(tmp_path / "slurm_score") == ([fault] if fault else [])
