# SPDX-License-Identifier: GPL-2.0
"""`lab timeline`: which CPU inserted, composed, sent and completed blocks, from a trace of four CPUs and from a run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mtlab.cmd import timeline
from mtlab.exp import traces
from mtlab.exp.traces import Event
from mtlab.util.base import ROOT, LabError

TRACE = Path(__file__).with_name("timeline") / "four-cpus.trace"
# What GC and checkpoints write is of no lane; a kernel of 5.10 has other flags; a write may be of several blocks.
OTHERS = """# tracer: nop
     kworker/1:2-31    [001] ..s1   100.000010: mtftl_unit_submitted: 253,0 lane -1 gc seq 9 blocks 32 zone 3 offset 5
     fio-9               [015] ...1   100.000003: mtftl_insert: 253,0 lane 15 lba 8 + 16 used 21
     mtftl/dm-0/15-77    [015] .N.1.  100.000020: mtftl_free: 253,0 lane 15 used 7
     mtftl/dm-0/15-77    [015] .....  100.000021: mtftl_zone_state: 253,0 zone 3 open -> full wp 512 valid 500
"""


def _lab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, ROOT / "scripts/lab", *words], capture_output=True, text=True)


def test_a_trace_is_read_in_the_order_of_time() -> None:
    assert traces.parse(OTHERS) == [Event(0, 15, "inserted", 15, 16, 21), Event(7, 1, "sent", -1, 32),
                                    Event(17, 15, "free", 15, 0, 7)]
    events = traces.parse(TRACE.read_text())
    assert len(events) == len(TRACE.read_text().splitlines())
    assert [events[0], events[-1]] == [Event(0, 0, "inserted", 0, 1, 5), Event(1961, 1, "completed", 1, 2)]
    assert traces.parse("") == []


def test_blocks_are_counted_by_cpu() -> None:
    """What the trace has, by counting its lines: units have two blocks, writes one."""
    def lines(name: str, cpu: str = r"\d+") -> int:
        return len(re.findall(rf"\[{cpu}\].*mtftl_{name}:", TRACE.read_text()))

    rows = traces.totals(traces.parse(TRACE.read_text()))
    assert [row[0] for row in rows] == ["CPU", "0", "1", "2", "3", "all"]
    for row, cpu in zip(rows[1:], ("000", "001", "002", "003", r"\d+"), strict=True):
        assert row[1:] == [str(lines("insert", cpu)), *(str(2 * lines(f"unit_{kind}", cpu))
                                                         for kind in ("composed", "submitted", "completed"))]
    assert int(rows[-1][1]) and int(rows[-1][4])


def test_steps_hold_all_of_the_time_and_no_more() -> None:
    events = [Event(us, 2, "sent", 0, blocks) for us, blocks in ((0, 1), (9, 2), (10, 4), (19, 8), (20, 16))]
    assert traces.rates(events, "sent", 2, 0, 20, 2) == [3, 12]
    assert traces.rates(events, "sent", 2, 10, 21, 11) == [4, 0, 0, 0, 0, 0, 0, 0, 0, 8, 16]
    assert traces.rates(events, "sent", 1, 0, 20, 2) == traces.rates(events, "composed", 2, 0, 20, 2) == [0, 0]


def test_a_trace_is_drawn_and_the_bytes_repeat(tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    done = [_lab("timeline", "--trace", str(TRACE), "--out", str(out)) for _ in range(2)]
    assert not done[0].returncode, done[0].stderr
    assert "figure.svg" in done[0].stderr and done[0].stdout.splitlines()[-1].split() == ["all", "8", "10", "10", "16"]
    whole = out.read_bytes()
    assert done[0].stdout == done[1].stdout and whole.startswith(b"<?xml")
    assert not _lab("timeline", "--trace", str(TRACE), "--out", str(out), "--from", "1.6").returncode
    assert out.read_bytes() != whole
    timeline.draw(traces.parse(TRACE.read_text()), tmp_path / "figure")
    assert out.read_bytes() == whole


@pytest.mark.parametrize(("words", "said"), [
    ((), "no command and no --trace"),
    (("--trace", str(TRACE), "true"), "runs no command"),
    (("--trace", "/dev/null"), "no event of the target, expected lines such as"),
    (("--trace", str(TRACE), "--from", "3"), "nothing to draw from 3 to 1.962 ms")])
def test_what_cannot_be_drawn_is_said(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = _lab("timeline", "--out", str(tmp_path / "x.svg"), *words)
    assert done.returncode and said in done.stderr and not list(tmp_path.iterdir())


def test_a_command_may_bound_what_is_traced() -> None:
    """Else all of it is: up to its end, and its exit status is the run's."""
    assert "\ntrace_on\nfor event" in timeline.wrapped("mtftl open x y")
    bounded = timeline.wrapped("mtftl open x y; trace_on; fio; trace_off")
    assert "\ntrace_off\nfor event" in bounded
    with pytest.raises(LabError, match="the command: no event"):
        timeline._events("", "the command")


def test_a_run_is_traced(lab: Path, tmp_path: Path) -> None:
    """Two CPUs with a lane each: every block that is inserted is composed, sent and completed."""
    command = ("mtftl format --force /dev/nvme0n1 >/dev/null; mtftl open /dev/nvme0n1 ftl write_unit=1; trace_on; "
               "dd if=/dev/zero of=/dev/mapper/ftl bs=4k count=40 oflag=direct status=none; trace_off; "
               "mtftl close ftl; exit 3")
    done = subprocess.run([lab, "timeline", "--clock", "virtual", "--cpus", "2", "--profile", "dram", "--out",
                           tmp_path / "run.svg", "--", command], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines()[-1].split()[:2] == ["all", "40"]
    assert {path.name for path in tmp_path.iterdir()} == {"run.svg", "run.trace"}
