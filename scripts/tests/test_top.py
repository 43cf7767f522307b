# SPDX-License-Identifier: GPL-2.0
"""The live view, from lines that a guest wrote: top/flash and top/ftl are of 4 KiB random reads and writes on tlc."""

import json
from pathlib import Path

from mtlab.cmd import top
from mtlab.exp import counters
from mtlab.run.testing import LabRun

RECORDED = Path(__file__).parent / "top"


def _screen(folder: Path) -> str:
    view = top.View(folder)
    view.poll()
    return "\n".join(view.screen())


def test_rates_are_the_differences_of_two_lines() -> None:
    before, now = (json.loads(line) for line in (RECORDED / "flash").read_text().splitlines())
    reads = (now["commands"]["read"] - before["commands"]["read"]) / 0.5
    shown = _screen(RECORDED)
    assert f"read {reads / 1000:.3g} k" in shown and "erase 0" in shown
    assert "write 111 MB/s" in shown
    assert shown.count("|") == 2 * (before["geometry"]["channels"] + 1)
    for text in ("rw, 4 lanes", "free 8", "idle, begins below 6", "of 256 entries", "WAF          1.04 now"):
        assert text in shown


def test_a_busy_die_is_seen() -> None:
    before, now = (json.loads(line) for line in (RECORDED / "flash").read_text().splitlines())
    for die, record in enumerate(now["dies"]):
        record["busy_ns"] = before["dies"][die]["busy_ns"] + (500_000_000 if die == 9 else 0)
    rows = [line for line in top.flash_lines(before, now) if "|" in line]
    assert rows[1].endswith("| █  |") and all(row.endswith("|    |") for row in rows[:1] + rows[2:])


def test_the_ftl_inside_a_drive() -> None:
    before, now = (json.loads(line) for line in (RECORDED / "flash").read_text().splitlines())
    names = ("host", "moved", "trimmed", "merges_switch", "merges_partial", "merges_full")
    before["ftl"] = dict.fromkeys(names, 7)
    now["ftl"] = {"mapping": "fast", "free_blocks": 11, **{name: 7 + 50 * n for n, name in enumerate(names)}}
    shown = "\n".join(top.flash_lines(before, now))
    assert "fast: host 0  moved 100  trimmed 200  merges 300 switch, 400 partial, 500 full; 11 blocks free" in shown


def test_lines_arrive_in_pieces(tmp_path: Path) -> None:
    """Half a line is not shown and not lost; what else is in the files does no harm."""
    flash = (RECORDED / "flash").read_bytes()
    (tmp_path / "flash").write_bytes(flash[:-100])
    view = top.View(tmp_path)
    view.poll()
    assert "nothing yet" in view.screen()[0]
    (tmp_path / "flash").write_bytes(flash)
    (tmp_path / "ftl").write_text("4.0 \n4.5 ftl: 0 8 linear\n")
    view.poll()
    assert "guest's clock" in view.screen()[0] and view.screen()[-1] == "target  not open"


def test_a_watched_guest_tells(lab_run: LabRun, tmp_path: Path) -> None:
    """In virtual time, so that its seconds hold as many looks on any host. The second device is a new one, with
    statistics of its own.
    """
    lab_run("mtftl format --force /dev/nvme0n1 && mtftl open /dev/nvme0n1 ftl && sleep .5 && "
            "dd if=/dev/zero of=/dev/mapper/ftl bs=64k count=200 oflag=direct && sleep .4 && "
            "mtftl close ftl && sleep .3 && mtftl open /dev/nvme0n1 ftl && sleep .5 && "
            "dd if=/dev/mapper/ftl of=/dev/null bs=4k count=70 iflag=direct && sleep .4",
            clock="virtual", watch=tmp_path, watch_every=100, profile="tlc", device={"flash.size": "1G"})
    shown = _screen(tmp_path)
    assert "guest's clock" in shown and "rw, 2 lanes" in shown
    lines = (tmp_path / "ftl").read_text().splitlines()
    closed = next(n for n, line in enumerate(lines) if n > 8 and "mtftl" not in line)
    first, second = counters.status(lines[closed - 1]), counters.status(lines[-1])
    assert first and second and first["writes"] == 200 and second["reads"] >= 70 and second["writes"] == 0
    for look in (first, second):
        assert sum(look["latency"]) == look["reads"] + look["writes"]
        assert len(look["latency"]) == len(look["latency_ns"]) + 1
    bounds = first["latency_ns"]
    longest = max(n for n, count in enumerate(first["latency"]) if count)
    assert bounds[0] <= first["write_ns"] / 200 <= bounds[longest]
    ats = [float(line.split()[0]) for line in lines]
    assert len(ats) > 15 and all(.1 < later - at < .2 for at, later in zip(ats, ats[1:], strict=False))


def test_a_closed_target_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "ftl").write_text((RECORDED / "ftl").read_text())
    view = top.View(tmp_path)
    view.poll()
    assert "GC " in "\n".join(view.screen())
    with (tmp_path / "ftl").open("a") as f:
        f.write("5.75 No devices found\n")
    view.poll()
    assert view.screen()[-1] == "target  not open"
