# SPDX-License-Identifier: GPL-2.0
"""The torture run proves itself: its oracle finds what a lying device does, and nothing else."""

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mtlab.build import kernels, sourcekernel
from mtlab.cmd import torture

BUGS = ["flush", "fua", "torn", "misplaced", "resurrect", "stale-read", "old-version", "lost-write", "replay"]


@pytest.fixture(scope="module")
def program() -> Path:
    return torture.program()


def _run(program: Path, device: str, seed: int) -> tuple[int, dict[str, int], str]:
    done = subprocess.run([program, "-s", str(seed), "-n", "200", device], capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stdout


def test_honest_device_passes(program: Path) -> None:
    status, summary, output = _run(program, "mem:4096", 3)
    assert status == 0, output
    assert summary["violations"] == 0 and summary["cuts"] >= 200
    assert all(summary[kind] > 0 for kind in ("write", "fua", "read", "flush", "discard", "zeroes"))


@pytest.mark.parametrize("bug", BUGS)
def test_lying_device_is_found(program: Path, bug: str) -> None:
    status, summary, output = _run(program, f"mem:4096,{bug}", 3)
    assert status == 1 and summary["violations"] > 0
    assert "VIOLATION" in output and "history of block" in output


def test_unknown_bug_is_refused(program: Path) -> None:
    done = subprocess.run([program, "mem:4096,nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_a_point_without_a_name_is_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "histories").write_text("history 1\nlinger- 0 8 0\n")
    done = subprocess.run([program, "-l", tmp_path / "histories", "mem:64"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == "expected NAME BLOCK NR CPU [&], found linger- 0 8 0\n"


def _torture(lab: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-B", lab, "torture", *words], capture_output=True, text=True)


@pytest.mark.parametrize(("seed", "kernel"), [(5, kernels.DEFAULT), (26, kernels.DEFAULT), (5, kernels.CURRENT)])
def test_power_cuts_lose_nothing(lab: Path, seed: int, kernel: str) -> None:
    """The few that are always made, on 4 and on 8 processors; `make torture` makes thousands."""
    done = _torture(lab, "--seed", str(seed), "--cuts", "25", "--check-every", "5", "--kernel", kernel)
    assert done.returncode == 0 and " 0 violations" in done.stdout, done.stdout + done.stderr


def test_power_cuts_of_a_stripe_lose_nothing(lab: Path) -> None:
    """Two drives that lose their power at one instant, below one dm-stripe."""
    done = _torture(lab, "--drives", "2", "--seed", "5", "--cuts", "10", "--check-every", "5")
    assert done.returncode == 0 and done.stdout.startswith("10 power cuts, 1 boots, 0 violations"), done.stdout


def test_only_cuts_are_of_several_drives(lab: Path) -> None:
    done = _torture(lab, "--drives", "2", "--storm", "3")
    assert "--drives 2: only power cuts" in done.stderr


def test_crafted_images_are_read_or_refused(lab: Path, tmp_path: Path) -> None:
    """Each has a field that is wrong, GC runs on it, and what is refused is refused by the field's name."""
    out = tmp_path / "crafted.json"
    done = _torture(lab, "--seed", "3", "--cuts", "4", "--crafted", "98", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())
    assert found["crafted"] >= 90 and found["mounted"] > 20 and found["named"] == found["refused"] > 20
    assert 0 < found["longest_us"] <= 2 * found["legal_us"]


def test_a_planted_bug_is_found(lab: Path) -> None:
    done = _torture(lab, "--seed", "23", "--per-boot", "25", "--bugs", "flush-forgets-a-lane")
    assert done.returncode == 0 and "1 of 1 planted bugs found" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", torture.bug_names())
def test_planted_bug_applies(name: str, tmp_path: Path) -> None:
    folder = torture.patched_source(name, tmp_path)
    assert (folder / "Kbuild").exists()


def test_no_other_bugs_module_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another job builds its own bug in the shared tree as soon as it may."""
    @contextlib.contextmanager
    def lock(name: str) -> Iterator[None]:
        yield
        if name == "bugs-tree":
            (tmp_path / "torture/bugs/key/tree/dm-mtftl.ko").write_text("another bug")

    def build(_kernel: object, tree: Path, asserts: bool) -> None:
        (tree / "dm-mtftl.ko").write_text("this bug" if asserts else "without assertions")

    monkeypatch.setattr(torture, "BUILD", tmp_path)
    monkeypatch.setattr(torture, "lock", lock)
    monkeypatch.setattr(torture.target, "build_module", build)
    module = torture.buggy_module(torture.bug_names()[0], argparse.Namespace(key="key"))    # type: ignore[arg-type]
    assert module.read_text() == "this bug"


def test_debug_configuration_is_complete() -> None:
    kasan = sourcekernel.configuration("kasan").splitlines()
    for option in ("KASAN", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP", "DEBUG_KMEMLEAK", "FAULT_INJECTION"):
        assert f"CONFIG_{option}=y" in kasan
    assert sourcekernel.refused("CONFIG_A=y\nCONFIG_B=y\n", "CONFIG_A=y\n# CONFIG_B is not set\n") == ["CONFIG_B=y"]


def test_a_later_fragment_of_a_configuration_replaces_an_option() -> None:
    small, pblk = (sourcekernel.configuration(flavour).splitlines() for flavour in ("small", "pblk"))
    assert [line for line in small if line.startswith("CONFIG_NR_CPUS=")] == ["CONFIG_NR_CPUS=64"]
    assert [line for line in pblk if line.startswith("CONFIG_LOCALVERSION=")] == ['CONFIG_LOCALVERSION="-mtftl-pblk"']
    assert set(small) - set(pblk) == {'CONFIG_LOCALVERSION="-mtftl-small"'}
