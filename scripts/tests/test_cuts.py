# SPDX-License-Identifier: GPL-2.0
"""Cuts that are judged on the host: the judge is right where a kernel is, and finds what is wrong."""

import argparse
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mtlab.build import kernels
from mtlab.cmd import cuts, history, judge, records, torture
from mtlab.cmd.history import History, Step
from mtlab.cmd.records import HEAD, NOTE_ACKED, NOTE_FLUSH, NOTE_FLUSHED

SEED = 4
ADMIT, NOTE = records.KINDS.index("buffered"), records.KINDS.index("note")


def _args(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{
        "rounds": 3, "cuts": 400, "states": 16, "sample": 0, "device": "ms=0", "cpus": 0, "timeout": 600,
        "kernel": kernels.DEFAULT, "verbose": False, "schedule": None} | more)


@pytest.fixture(scope="module")
def journal(emulator_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run that lost nothing; a guest makes it."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    boot = judge.journal(SEED, _args(), None, path)
    assert boot.status == 0, boot.report
    return path


def _judge(program: Path, journal: Path, place: Path, **more: object) -> tuple[dict[str, float], str]:
    place.mkdir()
    args = _args(**more)
    verdict = judge.judged(program, SEED, journal, place, args.cuts, args.states)
    return verdict.summary, verdict.report


def _records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Where each record of a journal is, its kind and its payload."""
    at = 0
    while at < len(data):
        *_, kind, _zone, _block, _nlb, size = HEAD.unpack_from(data, at)
        yield at, kind, data[at + HEAD.size:at + HEAD.size + size]
        at += HEAD.size + size


def _note(kind: int, op: int) -> bytes:
    return HEAD.pack(0, NOTE, 0, 0, 0, 16) + struct.pack("<4I", kind, op, 0, 0)


def test_nothing_is_lost(journal: Path, tmp_path: Path) -> None:
    summary, report = _judge(judge.program(), journal, tmp_path / "place")
    assert not report and summary["violations"] == 0
    assert summary["cuts"] > 300 and summary["distinct"] > 0.9 * summary["cuts"]
    assert summary["mounts_cut"] > 0 and summary["programmed"] > 0 and summary["acknowledged"] > 0
    # The guest made cuts itself, and found what the judge finds.
    assert summary["compared"] > 1000 and summary["disagreed"] == 0


def test_a_drive_may_be_formatted_with_fewer_blocks(emulator_binary: Path, tmp_path: Path) -> None:
    """Zones of this machine turn read-only, until its drive is made anew; the cuts after that are judged, too."""
    args, path = _args(rounds=12, cuts=1500), tmp_path / "journal"
    boot = judge.journal(5, args, None, path)
    assert boot.status == 0, boot.report
    sizes = [note.block for note in records.notes(path) if note.kind in (records.NOTE_ORACLE, records.NOTE_FORMATTED)]
    assert min(sizes) < sizes[0], "nothing turned read-only: take another seed"
    verdict = judge.judged(judge.program(), 5, path, tmp_path, args.cuts, args.states)
    assert not verdict.report and verdict.summary["violations"] == 0


def test_a_promise_that_was_not_kept_is_found(journal: Path, tmp_path: Path) -> None:
    """After each write that was acknowledged, the journal says that a flush was."""
    data = journal.read_bytes()
    broken = bytearray()
    for at, kind, payload in _records(data):
        broken += data[at:at + HEAD.size + len(payload)]
        if kind == NOTE and struct.unpack_from("<I", payload)[0] == NOTE_ACKED:
            broken += _note(NOTE_FLUSH, 77) + _note(NOTE_FLUSHED, 77)
    (tmp_path / "broken").write_bytes(broken)
    summary, report = _judge(judge.program(), tmp_path / "broken", tmp_path / "place")
    assert summary["violations"] > 0 and "stale: found version" in report


def test_another_blocks_data_is_found(journal: Path, tmp_path: Path) -> None:
    """What the buffer took of users' blocks is not what they wrote."""
    data = bytearray(journal.read_bytes())
    for at, kind, payload in _records(bytes(data)):
        for block in range(0, len(payload) - 4095, 4096) if kind == ADMIT else ():
            if payload[block:block + 8] == b"tforacle":
                data[at + HEAD.size + block + 16] ^= 1      # the stamp's block number
    (tmp_path / "broken").write_bytes(data)
    summary, _report = _judge(judge.program(), tmp_path / "broken", tmp_path / "place")
    assert summary["violations"] > 0


@pytest.mark.parametrize("bug", ["recovery-prefers-older", "torn-unit-ends-scan"])
def test_a_wrong_recovery_is_found_and_replayed(journal: Path, tmp_path: Path, bug: str) -> None:
    program = judge.program(torture.patched_source(bug, tmp_path))
    summary, report = _judge(program, journal, tmp_path / "place", cuts=3000)
    assert summary["violations"] > 0 and "VIOLATION" in report
    place = next(line.split()[1].rstrip(",") for line in report.splitlines() if line.startswith("in "))
    again = subprocess.run([program, "-s", str(SEED), "-m", "16", "-a", place, "-x", tmp_path / "tale",
                            tmp_path / "image", journal], capture_output=True, text=True)
    assert again.returncode == 1 and again.stdout.count("VIOLATION") == 1 and f"in {place}" in again.stdout
    # Also where an assertion has ended the mount.
    told = json.loads((tmp_path / "tale").read_text())
    assert told["zones"] and len(told["versions"]) == summary["blocks"]
    assert ("ended with signal" in again.stdout) == (set(told["versions"]) == {-1})


def test_a_kernel_that_disagrees_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.image").touch()
        (tmp_path / f"{number}.versions").write_bytes(struct.pack("<4I", 0, 1, 2, 3))
    found = [struct.pack("<4I", 0, 1, 2, 3), struct.pack("<4I", 0, 9, 2, 3), struct.pack("<4I", 0, 1, 2, 3)]
    monkeypatch.setattr(cuts, "read_in_guest", lambda *_args: (found, 2.5))
    assert cuts.compare(SEED, 4, tmp_path, _args()) == cuts.Compared(
        3, 1, "state 1: block 1 is version 9 in the guest, 1 here", 2.5)


def test_what_other_boots_work_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of another boot end meanwhile. A boot's seconds are those of its guest, its judge and its readers."""
    def guest_beside_another(*_args: object) -> torture.Boot:
        subprocess.run([sys.executable, "-c", "while __import__('time').process_time() < 0.5: pass"], check=True)
        return torture.Boot(SEED, 0, {}, "", 9.0, "", 4.0)

    monkeypatch.setattr(judge, "WORK", tmp_path)
    monkeypatch.setattr(judge, "program", lambda: tmp_path)
    monkeypatch.setattr(judge, "journal", guest_beside_another)
    monkeypatch.setattr(judge, "judged", lambda *_args: judge.Verdict({"blocks": 8, "processor": 2.0}, [], ""))
    monkeypatch.setattr(cuts, "compare", lambda *_args: cuts.Compared(5, seconds=1.0))
    outcome = cuts._make(SEED, _args(draw=0, enumerate=0))
    assert (outcome.seconds, outcome.read, outcome.read_blocks) == (7.0, 5, 40)


def test_a_kernel_reads_the_same(lab: Path, tmp_path: Path) -> None:
    """And what was done is kept."""
    def run(seconds: float) -> dict[str, float]:
        done = subprocess.run([sys.executable, "-B", lab, "cuts", "--boots", "1", "--rounds", "2", "--cuts", "300",
                               "--sample", "400", "--seed", str(SEED), "--json", tmp_path / "result"],
                              capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0 and " 0 violations" in done.stdout, done.stdout + done.stderr
        result: dict[str, float] = json.loads((tmp_path / "result").read_text())
        return result

    first = run(600)
    assert first["read_by_guests"] >= 3 and first["disagreed_blocks"] == 0 and first["compared_blocks"] > 10000
    assert run(60) == first


def test_workloads_are_drawn_by_the_seed() -> None:
    """Others for each boot, the same each time, and none with a write that fails."""
    args = argparse.Namespace(draw=12, enumerate=0, linger=False, faults=False)
    boots = [[str(one) for one in cuts._histories(seed, args)] for seed in (1, 2, 1)]
    assert boots[0] == boots[2] and len({*boots[0], *boots[1]}) == 24
    assert not any("fault" in text for text in boots[0]) and min(text.count("\n") for text in boots[0]) > 40
    faulty = cuts._histories(1, argparse.Namespace(draw=12, enumerate=0, linger=False, faults=True))
    assert all(1 <= str(one).count("fault") <= history.MOST_FAULTS for one in faulty)
    lingering = cuts._histories(1, argparse.Namespace(draw=12, enumerate=0, linger=True, faults=False))
    assert all(one.lingers for one in lingering) and history.parse("".join(map(str, lingering))) == lingering


def test_the_points_are_those_of_the_module() -> None:
    source = (torture.SOURCE / "linger/linger.c").read_text()
    assert tuple(re.findall(r'^\t\{ "([\w-]+)",', source, re.M)) == tuple(history.POINTS)


SLEPT = "lane-find", "lane-take", "lane-send", "user-lock"


def test_threads_linger_where_they_are_told(emulator_binary: Path, tmp_path: Path) -> None:
    """For as long as they are told; without that, the same takes a few milliseconds."""
    def one(*more: Step) -> History:
        return History(1, (Step("write", 1), Step("flush"), Step("write", 2), *more, Step("discard", 1),
                           Step("fua", 3)))

    # A point to which nobody comes is no longer armed in the next history.
    histories = [one(), *(one(Step(history.LINGER + point, 0, 32)) for point in SLEPT),
                 one(Step(history.LINGER + "gc-send", 0, 32)), one(Step("gc"), Step("rest"))]
    args = _args(device=f"ms=0,{judge.SMALLEST}", cpus=3)
    boot = judge.journal(SEED, args, None, tmp_path / "journal", histories)
    assert boot.status == 0, boot.report
    took = [0] * len(histories)
    begun: dict[int, int] = {}
    number = 0
    for note in records.notes(tmp_path / "journal"):
        if note.kind == records.NOTE_WORKLOAD:
            number = note.block
        elif note.kind in records.BEGINS and note.kind != records.NOTE_COMMAND:
            begun[note.op] = note.now
        elif note.kind in records.ENDS:
            took[number] = max(took[number], note.now - begun.pop(note.op))
    slept = took[1:-2]
    assert len(slept) == len(SLEPT) and all(32e6 <= ns < 60e6 for ns in slept), took
    assert all(ns < 12e6 for ns in (took[0], *took[-2:])), took
