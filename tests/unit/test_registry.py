"""slurm_score/factors/registry.py: a factor is added in one place, ours or an installed package's."""

import sys
from pathlib import Path

import pytest

from slurm_score.errors import FactorError
from slurm_score.factors import registry
from slurm_score.policy_yaml import parse_policy

FACTOR = """
import numpy as np
from slurm_score.factors import Factor, FactorParams, Term

FACTOR = Factor(
    name={name!r}, header="LUCK", position=25, summary="a constant", params=FactorParams,
    compute=lambda queue, params: Term(np.full(len(queue), 0.5)),
    describe=lambda queue, params, i: "is lucky",
)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on Python's path, as pip leaves one: what is written there is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("luck_factor", "no_factor"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def add_package(site: Path, module: str, text: str, attribute: str) -> None:
    """Install a package of one module with one entry point for a factor."""
    (site / f"{module}.py").write_text(text, encoding="utf-8")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[slurm_score.factors]\nluck = {module}:{attribute}\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")


def test_own_factors_stand_in_order_of_their_columns() -> None:
    """wait, remaining, size, qos, gres_fit, as sscore's header has them."""
    assert list(registry()) == ["wait", "remaining", "size", "qos", "gres_fit"]
    assert [factor.header for factor in registry().values()] == ["WAIT", "REMAIN", "SIZE", "QOS", "GRESFIT"]


def test_installed_factor_is_found_through_its_entry_point(install: Path) -> None:
    """A site's own factor takes its column between ours by its position."""
    add_package(install, "luck_factor", FACTOR.format(name="luck"), "FACTOR")
    assert list(registry.__wrapped__()) == ["wait", "remaining", "luck", "size", "qos", "gres_fit"]


def test_two_factors_of_one_name_are_refused(install: Path) -> None:
    """Fail closed at the start: nobody could tell which of the two a weight means."""
    add_package(install, "luck_factor", FACTOR.format(name="qos"), "FACTOR")
    with pytest.raises(FactorError, match="factor 'qos' is defined twice"):
        registry.__wrapped__()


def test_entry_point_that_is_no_factor_is_refused(install: Path) -> None:
    """Fail closed at the start, with the name of the entry point."""
    add_package(install, "no_factor", "FACTOR = 'wait'\n", "FACTOR")
    with pytest.raises(FactorError, match=r"entry point 'luck' of slurm_score.factors holds 'wait'"):
        registry.__wrapped__()


@pytest.mark.parametrize("name", list(registry()))
def test_every_factor_says_what_it_is(name: str) -> None:
    """Table, explanation and example policy are made from these."""
    factor = registry()[name]
    assert factor.name == name
    assert factor.summary
    assert factor.header.isupper()
    assert 0 <= factor.neutral <= 1


@pytest.mark.parametrize("name", list(registry()))
def test_every_factor_can_be_weighed_in_a_policy(name: str) -> None:
    """Nothing but its file is needed for that."""
    assert parse_policy(f"factors: {{{name}: {{weight: 3}}}}").factors[name].weight == 3
