"""One source in two forms, and predictors from outside."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slurm_score.factors import wait
from slurm_score.sim import jit
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.events import run
from slurm_score.sim.outside import Submitted
from slurm_score.sim.policies import Pool, named
from slurm_score.sim.synthetic import synthetic

WORK = synthetic(5)
POOL = Pool(procs=WORK.procs_total)

RUN = """
from slurm_score.sim.engine import Options, simulate
from slurm_score.sim.policies import Pool, named
from slurm_score.sim.synthetic import Recipe, synthetic
work = synthetic(1, Recipe(jobs=50))
print(simulate(work, Pool(procs=128), named("wfp3"), Options({options})).start_s.tolist())
"""


def doubled_wait(wait_s: float) -> float:
    """Return a wait's factor twice over."""
    return 2 * wait.value(wait_s, 100.0) + helper(wait_s)


def helper(value: float) -> float:
    """Return 1."""
    return 1.0 + 0 * value


def other(value: float) -> float:
    """Return 10."""
    return 10.0 + 0 * value


def test_plain_form_puts_other_functions_in_place() -> None:
    """The source stays as it is; only the copy calls the other function."""
    assert jit.plain(doubled_wait, {helper: other})(50.0) == 11.0
    assert jit.plain(doubled_wait)(500.0) == 3.0
    assert doubled_wait(50.0) == 2.0


def test_plain_form_has_no_numpy_scalars() -> None:
    """Python's min stands for numpy's minimum, which is many times slower on one number."""
    assert type(jit.plain(wait.value)(50.0, 100.0)) is float


def test_kernels_are_compiled_once() -> None:
    """A second call gives the same object."""
    pytest.importorskip("numba", reason="without numba nothing is compiled")
    assert jit.compiled(run) is jit.compiled(run)


class LastTwo:
    """Tsafrir's predictor, outside the kernels."""

    def __init__(self) -> None:
        self.runs: dict[int, list[int]] = {}

    def observe(self, job: Submitted, run_s: int, end_s: int) -> None:  # noqa: ARG002 - the shape of each
        """Keep the user's runs."""
        self.runs.setdefault(job.user, []).append(run_s)

    def predict(self, job: Submitted) -> float:
        """Return the mean of the last two, rounded down."""
        last = self.runs.get(job.user, [])[-2:]
        return float(sum(last) // 2) if len(last) == 2 else float(job.request_s)


def test_a_predictor_from_outside_gives_what_the_kernel_s_own_gives() -> None:
    """EASY++ with Tsafrir's predictor in both places."""
    own = simulate(WORK, POOL, named("fcfs"), Options(backfill="easy++", plan="tsafrir", order="pyss"))
    told = simulate(
        WORK, POOL, named("fcfs"), Options(backfill="easy++", plan="told", order="pyss"), predictor=LastTwo()
    )
    assert np.array_equal(own.start_s, told.start_s)
    assert not np.array_equal(own.start_s, simulate(WORK, POOL, named("fcfs"), Options(order="pyss")).start_s)


def started(options: str, cache: Path) -> tuple[str, list[str]]:
    """Return what a process of its own prints, and the files that it leaves in its cache."""
    env = {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", RUN.format(options=options)]
    out = subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout
    return out, sorted(path.name for path in cache.glob("slurm-score/*"))


def test_nothing_is_compiled_where_it_isn_t_wanted(tmp_path: Path) -> None:
    """Plain Python leaves nothing in the cache, and a cache that can't be written is no trouble."""
    printed, left = started("numba=False", tmp_path)
    assert left == []
    assert printed.startswith("[")


def test_the_command_runs_without_the_extra_and_says_what_the_report_needs(tmp_path: Path) -> None:
    """Neither numba nor matplotlib nor Jinja2 is needed, except for the page; asking for one is an error."""
    code = (
        "import sys; sys.modules.update(numba=None, matplotlib=None, jinja2=None);"
        "from slurm_score.cli import main; main(['simulate', '--synthetic', '1', *sys.argv[1:]])"
    )
    argv = [sys.executable, "-c", code]
    answers = [
        subprocess.run([*argv, *more], capture_output=True, text=True, check=False, cwd=tmp_path)
        for more in ([], ["--report", "page"], ["--numba"])
    ]
    assert [answer.returncode for answer in answers] == [0, 1, 1]
    assert answers[0].stdout.startswith("synthetic-1: 2000 jobs on 128 processors")
    assert "install slurm-score[sim]" in answers[1].stderr
    assert answers[2].stderr == "slurm-score: simulation: numba is not installed; install slurm-score[sim]\n"
    assert not (tmp_path / "page").exists()


def test_the_cache_s_folder_is_named_after_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the user's; where none can be written there is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = jit._cache_folder(run)
    assert folder is not None
    assert folder.parent == tmp_path / "slurm-score"
    assert jit._cache_folder(doubled_wait) != folder
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert jit._cache_folder(run) is None
