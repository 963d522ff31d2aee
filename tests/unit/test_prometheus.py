"""etc/prometheus-rules.yaml and grafana-dashboard.json: promtool takes them, alerts fire in their trouble."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from slurm_score.figures import Figures, Judged, Waits
from slurm_score.snapshot import read_snapshot, write_snapshot
from slurm_score.supply import supply_of
from tests.tools import ROOT, tool
from tests.unit import service_support
from tests.unit.builders import make_gpu_job
from tests.unit.service_support import Service

# pytest finds fixtures by their names in the module.
service = service_support.service

RULES = ROOT / "etc" / "prometheus-rules.yaml"
DASHBOARD = ROOT / "etc" / "grafana-dashboard.json"
METRIC = re.compile(r"slurm_score_[a-z0-9_]+")
FIGURES = Figures(
    waits=Waits(12, 3, 600.0, {"normal": 700.0}, {"a100": 700.0, "none": 5.0}),
    seconds={"read": 0.5, "score": 0.25, "plan": 0.125, "write": 1.0},
    left_over=4,
    cycles=9,
    sent=100,
    failed=2,
    judged=Judged(10, 4, 123.5, 1000.0),
)


def alerts() -> dict[str, dict[str, Any]]:
    """Return the alerts by name."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def expressions() -> Iterator[str]:
    """Yield every query of the dashboard, with an interval where Grafana puts its own."""
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "5m")


def promtool(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Return what promtool said."""
    return subprocess.run(
        [tool("promtool"), *arguments], input=text, capture_output=True, text=True, check=False
    )


@pytest.fixture
def metrics(service: Service) -> str:
    """Return /metrics of a service that has a hook, GPUs, answers and figures of cycles."""
    service.publish(make_gpu_job(1, "gpu:a100:1"))
    snapshot = read_snapshot(service.snapshot)
    write_snapshot(service.snapshot, replace(snapshot, figures=FIGURES, supply=supply_of(snapshot.queue())))
    service.state.refresh()
    service.ask("POST", "/v1/score", b"{}", "User-Agent: slurm_score.lua/0.1.0 (Lua 5.1; loaded 17)")
    return service.ask("GET", "/metrics")[2]


def samples(text: str) -> dict[str, float]:
    """Return the samples of /metrics by name and labels, as Prometheus writes them."""
    return {
        sample.name + "".join(f"{{{k}={v}}}" for k, v in sample.labels.items()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_figures_of_the_last_cycle_are_shown(metrics: str) -> None:
    """Each number of the snapshot's figures comes out under its own name."""
    found = samples(metrics)
    wanted = {
        "jobs_waiting": 12,
        "jobs_guarded": 3,
        "wait_p95_seconds": 600,
        "longest_wait_qos_seconds{qos=normal}": 700,
        "longest_wait_type_seconds{type=a100}": 700,
        "longest_wait_type_seconds{type=none}": 5,
        "cycle_seconds{part=read}": 0.5,
        "cycle_seconds{part=score}": 0.25,
        "cycle_seconds{part=plan}": 0.125,
        "cycle_seconds{part=write}": 1,
        "updates_left_over": 4,
        "cycles_total": 9,
        "updates_sent_total": 100,
        "updates_failed_total": 2,
        "predicted_runs_total": 10,
        "predictions_too_short_total": 4,
        "prediction_error_seconds_total": 123.5,
        "predicted_run_seconds_total": 1000,
        "killed": 0,
        "policy_broken": 0,
    }
    assert {name: found.get(f"slurm_score_{name}") for name in wanted} == wanted


def test_trouble_of_the_service_is_shown(service: Service) -> None:
    """A kill switch, and a policy that was broken by an edit."""
    service.policy.write_text("mode: nonsense\n", encoding="utf-8")
    service.snapshot.with_name("STOP").touch()
    service.state.refresh()
    found = samples(service.ask("GET", "/metrics")[2])
    assert (found["slurm_score_killed"], found["slurm_score_policy_broken"]) == (1, 1)


def test_promtool_takes_our_metrics(metrics: str) -> None:
    """Names, units and types as Prometheus wants them."""
    done = promtool("check", "metrics", text=metrics)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_metric_of_rules_and_dashboard_exists(metrics: str) -> None:
    """A name that /metrics doesn't have would be an alert that never fires, a panel that stays empty."""
    there = {name.partition("{")[0] for name in samples(metrics)}
    asked = [rule["expr"] for rule in alerts().values()] + list(expressions())
    named = {name for text in asked for name in METRIC.findall(text)}
    assert named - there == set()


def test_every_label_value_of_rules_and_dashboard_exists(metrics: str) -> None:
    """`what` of the GPUs and `outcome` of the answers are the two labels that are matched by value."""
    asked = "\n".join([*(rule["expr"] for rule in alerts().values()), *expressions()])
    there = set(re.findall(r'what="(\w+)"', metrics))
    assert set(re.findall(r'what="(\w+)"', asked)) <= there
    outcomes = {"scored", "neutral", "none", "invalid", "too_large"}
    assert set(re.findall(r'outcome="(\w+)"', asked)) <= outcomes


def test_promtool_takes_the_rules() -> None:
    """Syntax, expressions and templates."""
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    """Each one as the expression of a rule, which promtool can check."""
    rules = [{"record": f"panel:{i}", "expr": expr} for i, expr in enumerate(expressions())]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": rules}]}), encoding="utf-8")
    done = promtool("check", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_every_alert_has_a_sentence_and_a_remedy() -> None:
    """Who is woken at night reads what happened and what to do."""
    for name, rule in alerts().items():
        told = rule["annotations"]
        assert set(told) == {"summary", "remedy"}, name
        assert all(text[-1] == "." and len(text) < 200 for text in told.values()), name
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}, name


GPUS = 'slurm_score_gpus{{partition="main",type="a100",what="{}"}}'
HEALTHY = {
    'up{job="slurm-score"}': "1x300",
    "slurm_score_snapshot_age_seconds": "30x300",
    "slurm_score_cycles_total": "0+1x300",
    'slurm_score_cycle_seconds{part="read"}': "2x300",
    'slurm_score_cycle_seconds{part="write"}': "20x300",
    "slurm_score_updates_left_over": "0x300",
    "slurm_score_updates_sent_total": "0+60x300",
    "slurm_score_updates_failed_total": "0+1x300",
    "slurm_score_killed": "0x300",
    "slurm_score_policy_broken": "0x300",
    'slurm_score_hook_without_answer_total{why="failed"}': "3x300",
    'slurm_score_hook_without_answer_total{why="resting"}': "7x300",
    'slurm_score_answer_seconds_bucket{le="0.001"}': "0+995x300",
    'slurm_score_answer_seconds_bucket{le="0.02"}': "0+1000x300",
    'slurm_score_answer_seconds_bucket{le="+Inf"}': "0+1000x300",
    'slurm_score_answers_total{outcome="scored"}': "0+98x300",
    'slurm_score_answers_total{outcome="neutral"}': "0+2x300",
    'slurm_score_longest_wait_qos_seconds{qos="normal"}': "170000x300",
    "slurm_score_jobs_waiting": "500x300",
    "slurm_score_jobs_guarded": "30x300",
    GPUS.format("total"): "100x300",
    GPUS.format("broken"): "4x300",
    GPUS.format("free"): "16x300",
    GPUS.format("block"): "16x300",
    GPUS.format("asked"): "40x300",
    "slurm_score_predicted_runs_total": "0+10x300",
    "slurm_score_predictions_too_short_total": "0+4x300",
}
"""One series for each metric, a value a minute, of a cluster that is well."""

TROUBLE: dict[str, dict[str, str]] = {
    "SlurmScoreServiceDown": {'up{job="slurm-score"}': "0x300"},
    "SlurmScoreCycleOld": {"slurm_score_snapshot_age_seconds": "0+60x300"},
    "SlurmScoreNoSnapshot": {"slurm_score_cycles_total": "_x300"},
    "SlurmScoreCycleSlow": {'slurm_score_cycle_seconds{part="write"}': "50x300"},
    "SlurmScoreUpdatesLeftOver": {"slurm_score_updates_left_over": "9x300"},
    "SlurmScoreUpdatesRefused": {"slurm_score_updates_failed_total": "0+10x300"},
    "SlurmScoreKillSwitchOn": {"slurm_score_killed": "1x300"},
    "SlurmScorePolicyBroken": {"slurm_score_policy_broken": "1x300"},
    "SlurmScoreHookFailsOpen": {'slurm_score_hook_without_answer_total{why="failed"}': "0+1x300"},
    "SlurmScoreHookSlow": {'slurm_score_answer_seconds_bucket{le="0.001"}': "0+10x300"},
    "SlurmScoreNeutralScores": {'slurm_score_answers_total{outcome="neutral"}': "0+20x300"},
    "SlurmScoreLongWait": {'slurm_score_longest_wait_qos_seconds{qos="normal"}': "500000x300"},
    "SlurmScoreGuardTierFull": {"slurm_score_jobs_guarded": "300x300"},
    "SlurmScoreFragmented": {GPUS.format("block"): "4x300"},
    "SlurmScoreGpusBroken": {GPUS.format("broken"): "20x300"},
    "SlurmScorePredictionsTooShort": {"slurm_score_predictions_too_short_total": "0+7x300"},
}


def firing(series: dict[str, str], names: list[str]) -> dict[str, Any]:
    """Return a test of promtool: of all alerts exactly these fire after 4 h of these series."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "4h",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names],
            }
        ],
    }


def test_each_alert_fires_in_its_trouble_and_in_no_other(tmp_path: Path) -> None:
    """Nothing fires on a cluster that is well; each trouble alone raises its own alert alone."""
    assert list(TROUBLE) == list(alerts())
    assert {name for broken in TROUBLE.values() for name in broken} <= set(HEALTHY)
    tests = [
        firing(HEALTHY, []),
        *(firing(HEALTHY | broken, [name]) for name, broken in TROUBLE.items()),
    ]
    path = tmp_path / "tests.yaml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}),
        encoding="utf-8",
    )
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_of_the_dashboard_stand_side_by_side() -> None:
    """Each has an id of its own, a title, a unit and a place of its own on Grafana's 24 columns."""
    found = panels()
    assert len({panel["id"] for panel in found}) == len(found)
    assert all(panel["title"] and panel["fieldConfig"]["defaults"]["unit"] for panel in found)
    taken: set[tuple[int, int]] = set()
    for panel in found:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(columns) < 24, panel["title"]
        taken |= cells


def test_dashboard_asks_the_source_that_is_chosen() -> None:
    """No panel names a data source of somebody's own Grafana."""
    sources = {panel["datasource"]["uid"] for panel in panels()}
    variables = json.loads(DASHBOARD.read_text(encoding="utf-8"))["templating"]["list"]
    assert sources == {"${datasource}"}
    assert [(one["name"], one["type"]) for one in variables] == [("datasource", "datasource")]
