# SPDX-License-Identifier: GPL-2.0
"""Alerts and units of `mtftl metrics`, as far as a host can tell. test_tool.py has what the command prints."""

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


def test_alerts_and_docs_name_metrics_that_exist() -> None:
    source = (target.SOURCE / "tool/metrics.c").read_text()
    there = set(re.findall(r'"(mtftl_\w+)"', source)) | {"mtftl_info"}
    asked = set(re.findall(r"\b(mtftl_\w+)", (METRICS / "mtftl-alerts.yml").read_text()))
    assert asked <= there
    page = (ROOT / "docs/use/metrics.md").read_text()
    assert set(re.findall(r"`(mtftl_\w+)", page)) == there


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for name in ("mtftl-metrics.service", "mtftl-metrics.timer"):
        text = (METRICS / name).read_text().replace("/usr/sbin/mtftl", str(target.tool()))
        (tmp_path / name).write_text(text)
    for name in ("mtftl-metrics.service", "mtftl-metrics.timer"):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / name],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "mtftl" not in done.stderr, done.stderr
