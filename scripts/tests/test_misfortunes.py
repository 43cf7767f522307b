# SPDX-License-Identifier: GPL-2.0
"""The judge of the misfortunes: what it calls lost and wrong; and what the experiment makes of what guests say."""

import json
import subprocess
from pathlib import Path

import pytest
from mtlab.build import guest
from mtlab.exp import campaign
from mtlab.exp.experiments import load
from mtlab.run.outcome import Result
from mtlab.util.base import LabError

BLOCK, BLOCKS = 4096, 64
WORK = {"struck_ms": 300, "ended_ms": 1000, "window_ms": 50, "threads": 4, "stuck": 0, "well": 4, "failed": 0,
        "errors": {}, "windows": [[at, 100] for at in range(20)]}
GOOD = {"promised": 8192, "lost": 0, "unreadable": 0, "wrong": 0}


def _promises(*words: str | Path) -> str:
    return subprocess.run([guest.program("guest-promises"), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with files that were overwritten and synced."""
    _promises("make", tmp_path / "files", tmp_path / "state", str(BLOCKS))
    _promises("write", tmp_path / "files", tmp_path / "state", "5,20,0,60000,1", "true")
    return tmp_path


def _judged(written: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(_promises("judge", written / "files", written / "state"))
    return found


def _change(written: Path, name: str, at: int, data: bytes) -> None:
    with (written / "files" / name).open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_all_that_was_synced_is_there(written: Path) -> None:
    found = _judged(written)
    assert (found["lost"], found["unreadable"], found["wrong"]) == (0, 0, 0)
    assert found["promised"] >= 8 * BLOCKS * BLOCK


def test_zeroes_a_short_file_and_no_file_are_lost(written: Path) -> None:
    _change(written, "cold-0", 3 * BLOCK, bytes(BLOCK))
    with (written / "files/cold-1").open("r+b") as file:
        file.truncate((BLOCKS - 2) * BLOCK)
    (written / "files/cold-2").unlink()
    assert _judged(written)["lost"] == (1 + 2 + BLOCKS) * BLOCK


def test_an_older_version_is_lost(written: Path, tmp_path: Path) -> None:
    hot = written / "files/hot-0"
    before = hot.read_bytes()
    _promises("write", written / "files", written / "state", "5,100,1,60000,1", "true")
    changed = sum(before[at:at + BLOCK] != hot.read_bytes()[at:at + BLOCK] for at in range(0, len(before), BLOCK))
    hot.write_bytes(before)
    assert _judged(written)["lost"] == changed * BLOCK > 0


def test_a_flipped_bit_and_anothers_block_are_wrong(written: Path) -> None:
    data = (written / "files/cold-0").read_bytes()
    _change(written, "cold-0", 5 * BLOCK + 1000, bytes([data[5 * BLOCK + 1000] ^ 1]))
    _change(written, "cold-1", 0, data[7 * BLOCK:8 * BLOCK])
    found = _judged(written)
    assert (found["wrong"], found["lost"]) == (2 * BLOCK, 0)


def _files(work: object = WORK, **more: object) -> dict[str, bytes]:
    told = {"kept/work.out": work, "after/judged.out": GOOD, "after/later.out": GOOD, "after/again.out": WORK, **more}
    return {name.replace("__", "/"): value if isinstance(value, bytes) else json.dumps(value).encode()
            for name, value in {"after/mount": b"0\n", **told}.items()}


def _sample(files: dict[str, bytes], what: str = "failed-write") -> dict[str, object]:
    (found,) = (s for s in load("misfortunes").samples({f"btrfs {what}": files}) if s["subject"] == "btrfs")
    return dict(found)


def test_what_programs_saw() -> None:
    stopped = WORK | {"well": 0, "failed": 40, "errors": {"EIO": 40}}
    assert _sample(_files())["live"] == "goes on"
    assert _sample(_files(WORK | {"stuck": 1}))["live"] == "hangs"
    assert _sample(_files(b"", kept__work=b"hangs\n"))["live"] == "hangs"
    assert _sample(_files(stopped | {"errors": {"EROFS": 9}}))["live"] == "read-only"
    assert _sample(_files(stopped | {"errors": {"ENOSPC": 9}}))["live"] == "no space"
    assert _sample(_files(stopped))["live"] == "fails"
    assert _sample(_files(stopped, **{"kept/live.out": GOOD | {"unreadable": 8192}}))["live"] == "shut down"


def test_for_how_long_it_was_slower() -> None:
    assert _sample(_files())["slow_ms"] == 0
    pause = [[at, 0 if 6 <= at < 10 else 100] for at in range(20)]
    assert _sample(_files(WORK | {"windows": pause}))["slow_ms"] == 250
    assert "slow_ms" not in _sample(_files(WORK | {"windows": pause}), "full")


def test_the_worse_judgement_counts_and_no_mount_is_all() -> None:
    assert _sample(_files(**{"after/later.out": GOOD | {"lost": 4096}}))["lost_kib"] == 4
    none = _sample({"kept/work.out": json.dumps(WORK).encode(), "after/mount": b"32\n", "after/repaired": b"hangs\n"})
    assert none["mount"] == "hangs" and "lost_kib" not in none and none["writes_again"] == 0
    assert load("misfortunes").table([none])[1][5:9] == ["hangs", "-", "-", "-"]


def test_a_row_can_be_repeated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row names its run, and only that is booted."""
    booted = []

    def boot(run: campaign.Run, seed: int, fresh: bool) -> Result:
        booted.append((run.name, seed, fresh))
        return Result(0, None, "", "", _files(), 1, "", "tcg")

    experiment = load("misfortunes")
    monkeypatch.setattr(campaign, "_boot", boot)
    found = campaign.some(experiment, ["f2fs read-only"], False, True)
    assert booted == [("f2fs read-only", 0, True)]
    assert experiment.table([s for s in found if s["subject"] == "f2fs"])[1][-1] == "'f2fs read-only'"
    with pytest.raises(LabError, match="no run 'f2fs flood'"):
        campaign.some(experiment, ["f2fs flood"], False, False)
