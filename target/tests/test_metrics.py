# SPDX-License-Identifier: GPL-2.0
"""Alerts, dashboard and units of `mtftl metrics`, as far as a host can tell.

test_tool.py has what the command prints, guest/prometheus_sees_the_targets_counters.sh what Prometheus makes of it.
"""

import json
import re
import subprocess
from pathlib import Path

from mtlab.build import target
from mtlab.util.base import ROOT

HERE = Path(__file__).resolve().parent
METRICS = target.SOURCE / "metrics"


def test_each_alert_fires(promtool: Path, tmp_path: Path) -> None:
    """And has a test for both; promtool runs them."""
    alerts = METRICS / "mtftl-alerts.yml"
    tests = tmp_path / "tests.yml"
    tests.write_text((HERE / "alerts.yml").read_text().replace("ALERTS", str(alerts)))
    for command in (["check", "rules", alerts], ["test", "rules", tests]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in re.findall(r"alert: (\w+)", alerts.read_text()):
        assert len(re.findall(rf"alertname: {name}\b", tests.read_text())) == 2, name


def metrics_there() -> set[str]:
    source = (target.SOURCE / "tool/metrics.c").read_text()
    return set(re.findall(r'"(mtftl_\w+)"', source)) | {"mtftl_info"}


def test_alerts_and_docs_name_metrics_that_exist() -> None:
    there = metrics_there()
    asked = set(re.findall(r"\b(mtftl_\w+)", (METRICS / "mtftl-alerts.yml").read_text()))
    assert asked <= there
    page = (ROOT / "docs/use/metrics.md").read_text()
    assert set(re.findall(r"`(mtftl_\w+)", page)) == there


def test_prometheus_takes_what_the_dashboard_asks(promtool: Path, tmp_path: Path) -> None:
    """Each panel asks of metrics that exist, in expressions that promtool can read, and lies beside the others."""
    board = json.loads((METRICS / "mtftl-dashboard.json").read_text())
    asked = [query["expr"] for panel in board["panels"] for query in panel["targets"]]
    asked += re.findall(r"label_values\((.*), \w+\)", "\n".join(
        variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"))
    assert {re.sub("_bucket$", "", name) for name in re.findall(r"\b(mtftl_\w+)", "\n".join(asked))} <= metrics_there()
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert set(re.findall(r"\$(\w+)", "\n".join(asked))) - {"__rate_interval"} <= variables
    rules = [{"record": f"panel:{n}", "expr": expr.replace("$__rate_interval", "5m")} for n, expr in enumerate(asked)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True)
    assert done.returncode == 0 and f"{len(asked)} rules found" in done.stdout, done.stdout + done.stderr
    places = [(x, y) for panel in board["panels"] for at in [panel["gridPos"]]
              for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(places) == len(set(places)) and max(x for x, _ in places) < 24


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for name in ("mtftl-metrics.service", "mtftl-metrics.timer"):
        text = (METRICS / name).read_text().replace("/usr/sbin/mtftl", str(target.tool()))
        (tmp_path / name).write_text(text)
    for name in ("mtftl-metrics.service", "mtftl-metrics.timer"):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / name],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "mtftl" not in done.stderr, done.stderr
