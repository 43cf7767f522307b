# SPDX-License-Identifier: GPL-2.0
"""A drive's firmware without a guest: closed forms, the same twice, words that are wrong."""

from pathlib import Path

import pytest
from mtlab.exp.campaign import Campaign
from mtlab.exp.experiments import About, Experiment, Run
from mtlab.run import firmware, outcome
from mtlab.run.firmware import simulate
from mtlab.run.options import MODEL, Options
from mtlab.util.base import LabError

DRIVE = ("channels=4", "dies=2", "blocks=64", "block_pages=64", "read_ns=50000", "program_ns=600000", "gc_begin=95",
         "spare_permille=250")


def test_rates_are_what_dies_can() -> None:
    """Writes wait for eight dies that program; one reader waits for one die."""
    written = simulate(*DRIVE, "fill=0", "depth=32", "buffer=65536", "warm=100", "requests=4000")
    assert written["iops"] == pytest.approx(8 / 600e-6, rel=0.01) and not written["moved"]
    read = simulate(*DRIVE, "reads=100", "requests=1000")
    assert read["reads"]["p1_us"] == read["reads"]["p100_us"] == 50 and read["iops"] == pytest.approx(20000, rel=0.01)


def test_the_same_twice() -> None:
    words = (*DRIVE, "depth=8", "random=50", "reads=30", "age=150", "requests=3000", "mapping=last",
             "log_blocks=8")
    assert simulate(*words) == simulate(*words) != simulate(*words, "seed=2")


@pytest.mark.parametrize("word,said", [("blocks", "expected NAME=VALUE"), ("block=3", "names nothing"),
                                       ("blocks=many", "no number"), ("mapping=guess", "there is no mapping"),
                                       ("spare_permille=1", "more to spare"), ("depth=0", "at least 1"),
                                       ("small=100", "multiple of 4096"), ("zone_dies=3", "such a shape"),
                                       ("refresh_ns=999999999", "expected 0 or at least 1000000000"),
                                       ("resume_ns=100000000001", "expected at most 100000000000")])
def test_wrong_words(word: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        simulate(*DRIVE, word)


@pytest.mark.usefixtures("emulator_binary")      # results name its version
def test_a_run_without_a_guest(tmp_path: Path) -> None:
    """A drive a line, and as many seeds as are asked for."""
    found = []
    run = Run("drives", "".join(f"{name} {' '.join(DRIVE)} requests=500 depth=4 age=20\n" for name in "ab"),
              Options(clock=MODEL), seeds=2)
    experiment = Experiment("toy", About("t", "q", by=["file"]), lambda _quick: [run],
                            lambda files: [{"file": name, "size": len(data), "data": data.decode()}
                                           for name, data in sorted(files["drives"].items())],
                            lambda _found, _quick: [], lambda _found: [[]], lambda _found, _path: None)
    assert not Campaign([experiment], True, lambda _one, results: found.append(results), fresh=True).run()
    assert [s["file"] for s in found[0].samples] == ["a.json", "b.json"]
    assert sorted(found[0].provenance["inputs"]) == ["drives", "drives@1"]
    assert set(found[0].provenance["starts"].values()) == {MODEL}


def test_what_a_drive_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its processor time is kept with what it told."""
    monkeypatch.setattr(outcome, "KEPT", tmp_path)
    lines = f"drive {' '.join(DRIVE)} requests=30000 depth=4"
    result = firmware.run(lines, 0, False)
    assert 0 < result.worked < 1.5 * result.seconds
    assert firmware.run(lines, 0, False).worked == result.worked
    with pytest.raises(LabError, match="names nothing"):
        firmware.run("drive block=3", 0, False)
