# SPDX-License-Identifier: GPL-2.0
"""What lint remembers: only files that a checker found clean, and only as long as nothing changes.

And which tests `lab check` takes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mtlab.build import emulator
from mtlab.cmd import quality
from mtlab.util.base import ROOT, LabError

CHECKER = """#!/bin/sh
printf '%s ' "$@" >>"$0.log"
shift 2
! grep -l bad "$@"
"""


def test_a_clean_file_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complaint comes back each time, and a change of the file, the options or the checker is seen."""
    monkeypatch.setattr(quality, "ROOT", tmp_path)
    monkeypatch.setattr(quality, "LINT", tmp_path / "lint")
    quality.LINT.mkdir()
    checker, good, other = tmp_path / "checker", tmp_path / "good", tmp_path / "other"
    log = tmp_path / "checker.log"
    checker.write_text(CHECKER)
    good.write_text("fine")
    other.write_text("bad")

    def checked(*files: Path, option: str = "-e") -> tuple[str, list[str]]:
        log.write_text("")
        said = quality.check_files(["sh", checker, option, "fine|bad"], checker, files)
        return said, [Path(word).name for word in log.read_text().split() if word.startswith("/")]

    assert checked(good) == ("", ["good"])
    assert checked(good) == ("", [])
    for _ in range(2):
        said, names = checked(good, other)
        assert "other" in said and names == ["other"]
    other.write_text("fine")
    assert checked(good, other) == ("", ["other"])
    assert checked(good, other, option="-E") == ("", ["good", "other"])
    checker.write_text(CHECKER + "# another version\n")
    assert checked(good) == ("", ["good"])
    good.write_text("bad")
    assert "good" in checked(good, other)[0]


# Of a pytest of its own: it is no worker of the one that runs this test, and has none of its options.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {
    "PYTHONPATH": str(ROOT / "scripts")}


def _collected(tests: Path, *options: str) -> set[str]:
    """Names of the tests in a file that a run would take."""
    command = [sys.executable, "-B", "-m", "pytest", "--collect-only", "-q", "-p", "mtlab.run.testing", *options, tests]
    done = subprocess.run(command, cwd=tests.parent, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"::(\w+)$", done.stdout, re.M))


def test_what_starts_the_emulator_is_left_out(tmp_path: Path) -> None:
    """By its fixtures, also through others."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")      # its own root
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef own(lab_run): pass\n"
        "def test_run(lab_run): pass\n"
        "def test_command(lab): pass\n"
        "def test_own(own): pass\n"
        "@pytest.mark.usefixtures('emulator_binary')\ndef test_binary(): pass\n"
        "def test_host(tmp_path): pass\n")
    assert _collected(tmp_path / "test_it.py", "--no-guest") == {"test_host"}
    assert len(_collected(tmp_path / "test_it.py")) == 5


def test_a_test_that_hangs_fails_by_name(tmp_path: Path) -> None:
    """Beside others and in a fixture, too. The rest of the run goes on, and what failed is told at once."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(
        "from mtlab.run import testing\ntesting.LIMIT = 1\npytest_plugins = ['mtlab.run.testing']\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest, subprocess\n"
        "@pytest.fixture\ndef stuck(): subprocess.run(['sleep', 'inf'])\n"
        "def test_program(): subprocess.run(['sleep', 'inf'])\n"
        "def test_fixture(stuck): pass\n"
        "def test_other(): pass\n")
    command = [sys.executable, "-B", "-m", "pytest", "-q", "--numprocesses=1", tmp_path]
    env = ENVIRONMENT | {"MTFTL_BUILD": str(tmp_path / "build")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    at_once, at_end = done.stdout.split("= FAILURES =")
    assert set(re.findall(r"^failed after [1-9]\d* s: .*::(\w+)$", at_once, re.M)) == {"test_program", "test_fixture"}
    assert at_end.count("Failed: Timeout >1") >= 2 and "1 passed, 2 failed" in at_end


def test_no_emulator_starts_in_lab_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that starts it without its fixture fails there."""
    monkeypatch.setenv(emulator.FORBIDDEN, "1")
    with pytest.raises(LabError, match="asks for the fixture emulator_binary"):
        emulator.build.__wrapped__()
