# SPDX-License-Identifier: GPL-2.0
"""Drives that a guest of their own prepares, once, for many runs."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mtlab.run import machine, prepared
from mtlab.run.testing import LabRun
from mtlab.util import base
from mtlab.util.base import LabError

MIB = 1 << 20
WRITE = "echo prepared | dd of=/dev/nvme0n1 bs=4096 conv=sync,fsync oflag=direct status=none"
RESET = "blkzone report -c 1 /dev/nvme0n1; blkzone reset -c 1 /dev/nvme0n1"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of prepared drives of our own, and of their locks. They are small, however full the disk is."""
    monkeypatch.setattr(prepared, "need_space", lambda *_: None)
    monkeypatch.setattr(prepared, "FOLDER", tmp_path / "drives")
    monkeypatch.setattr(prepared, "lock", lambda name: base.lock(str(tmp_path / name)))
    return tmp_path / "drives"


def _write(path: Path) -> dict[str, bytes]:
    path.write_bytes(b"x" * MIB + bytes(7 * MIB) + b"y" * MIB)
    return {"kept/note": b"from its guest"}


def test_a_drive_is_prepared_once_and_zeroes_take_no_space(place: Path, tmp_path: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> dict[str, bytes]:
        made.append(path)
        return _write(path)

    def begin(key: str, run: str) -> Path:
        (tmp_path / run).mkdir()
        assert (prepared.get(key, make, tmp_path / run / "media") / "note").read_bytes() == b"from its guest"
        return tmp_path / run / "media"

    first = begin("a0", "one")
    assert first.stat().st_size == 9 * MIB and first.read_bytes()[8 * MIB:] == b"y" * MIB
    assert first.stat().st_blocks * 512 <= 3 * MIB
    first.write_bytes(b"spoilt")
    assert begin("a0", "two").stat().st_size == 9 * MIB and len(made) == 1
    begin("b0", "three")
    assert len(made) == 2 and sorted(p.name for p in place.iterdir()) == ["a0", "b0"]


def test_a_drive_that_could_not_be_prepared_is_prepared_anew(place: Path, tmp_path: Path) -> None:
    def fail(path: Path) -> dict[str, bytes]:
        path.write_bytes(b"half")
        raise LabError("no")

    with pytest.raises(LabError, match="no"):
        prepared.get("a0", fail, tmp_path / "media")
    assert [path.name for path in place.iterdir()] == ["a0.part"]
    prepared.get("a0", _write, tmp_path / "media")
    assert [path.name for path in place.iterdir()] == ["a0"]


def test_drives_that_were_not_used_for_long_go(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "LIMIT", 20 * MIB)
    for number, key in enumerate(("a0", "b0", "c0", "d0")):
        (tmp_path / key).mkdir()
        prepared.get(key, _write, tmp_path / key / "media")
        os.utime(place / key, (number, number))
    assert sorted(p.name for p in place.iterdir()) == ["c0", "d0"]


def test_runs_start_with_copies_of_a_prepared_drive(lab_run: LabRun, place: Path, monkeypatch: pytest.MonkeyPatch,
                                                    ) -> None:
    """Its guest runs once; what a run writes is not there for the next one; both runs are the same to the bit."""
    prepares, keep = [], machine._prepare

    def count(*arguments: Any) -> Mapping[str, bytes]:
        prepares.append(arguments)
        return keep(*arguments)

    monkeypatch.setattr(machine, "_prepare", count)
    before = "mkdir kept; echo note >kept/note; " + WRITE
    look = f"cat kept/note; head -c 9 /dev/nvme0n1; {RESET}"
    options = {"clock": "virtual", "profile": "tlc", "device": {"flash.size": "256M"}, "module": False,
               "before": before}
    one, two = (lab_run(look, **options) for _ in range(2))
    assert one.output.startswith("note\nprepared\n") and "wptr 0x000008" in one.output
    assert (one.output, one.inputs, len(prepares)) == (two.output, two.inputs, 1)
    other = lab_run(look, **options | {"before": before.replace("prepared", "ageddddd")})
    assert other.output.startswith("note\nageddddd\n") and len(prepares) == 2 and other.inputs != one.inputs
    with pytest.raises(LabError, match="--before: exit status 3\nnot this one"):
        lab_run(look, **options | {"before": "echo not this one; exit 3"})
