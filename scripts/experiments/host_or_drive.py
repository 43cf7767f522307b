# SPDX-License-Identifier: GPL-2.0
"""Host against firmware: the same flash as a black box with its FTL inside, and as a zoned drive under dm-mtftl.

The drive's FTL runs on one core of the controller, which takes its time for each command; the host's runs on all cores
of the host. Both keep a quarter of the flash for themselves. First on a fresh drive, then when all of it has been
written at random.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, within
from mtlab.exp.sources import KNOWN
from mtlab.run.options import Options

MIB = 1 << 20
DIES, BLOCK_PAGES, UNIT = 8, 6, 4 * 16384 * 3   # 4 planes, pages of 16 KiB, 3 of them a program
ZONE, ZONES = DIES * BLOCK_PAGES * 4 * 16384, 128
SERVICE = (1, 4, 8)                             # microseconds of the controller for a command
USERS = (1, 4, 16, 64)
FRESH_MS, STEADY_MS = 25, 100
PROGRAMS = DIES * UNIT / 700e-6 / 4096          # blocks a second that the dies take
HOST, LATE = "host", "1-late"                   # late: a drive that collects from 95% on, not from FEMU's 75%
STATES = ("fresh", "steady")
SEEDS = 3


def _script(drive: str, quick: bool) -> str:
    path = "/dev/mapper/ftl" if drive == HOST else "/dev/nvme0n1"
    common = {"filename": path, "ioengine": "psync", "norandommap": True, "thread": True}
    lines = ["set -e"]
    if drive == HOST:
        lines += ["mtftl format --force --op 25% /dev/nvme0n1 >/dev/null", "mtftl open /dev/nvme0n1 ftl"]
    for state in STATES:
        if state == "steady":
            lines += [fio.command("fill.json", **(common | {"ioengine": "io_uring", "iodepth": 4}), rw="write",
                                  bs="128k"),
                      fio.command("age.json", **common, rw="randwrite", bs="4k", numjobs=16,
                                  io_size=f"{(4 if quick else 24) * MIB}"), counters.flash_log("before.log")]
        time = {"time_based": True, "runtime": f"{FRESH_MS if state == 'fresh' else STEADY_MS}ms"}
        lines += [fio.command(f"{state}-{users}.json", **common, **time, rw="randwrite", bs="4k", numjobs=users)
                  for users in _users(quick)]
    lines.append(counters.flash_log("after.log"))
    if drive == HOST:
        lines.append("mtftl close ftl")
    return "\n".join(lines)


def _users(quick: bool) -> tuple[int, ...]:
    return (1, 16) if quick else USERS


def _drives(quick: bool) -> tuple[str, ...]:
    return (HOST, *(f"{us}" for us in ((1, 8) if quick else SERVICE)), *(() if quick else (LATE,)))


def _service(drive: str) -> int:
    """Microseconds of the drive's core for a command."""
    return int(drive.split("-")[0])


def runs(quick: bool) -> list[Run]:
    flash = {"flash.channels": "4", "flash.dies": "2", "flash.block_pages": f"{BLOCK_PAGES}", "flash.buffer": "4M",
             "flash.erase_ns": f"{3_500_000 * BLOCK_PAGES // 768}"}
    zoned = {"flash.size": f"{ZONES * 4 * MIB}", "zoned.zone_size": f"{4 * MIB}", "zoned.zone_capacity": f"{ZONE}"}
    box = {"zoned": "off", "flash.personality": "blackbox", "flash.size": f"{ZONES * ZONE}", "flash.spare": "33"}
    return [Run(drive, _script(drive, quick),
                Options(clock="virtual", cpus=8, profile="tlc", timeout=3600, module=drive == HOST,
                        device=flash | (zoned if drive == HOST else
                                        box | {"flash.service_ns": f"{_service(drive) * 1000}"} |
                                        ({"flash.gc_begin": "95"} if drive == LATE else {}))),
                ("*.json", "*.log"), seeds=1 if quick else SEEDS, seconds=40)
            for drive in _drives(quick)]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for drive, outputs in files.items():
        written = 0.0
        for state in STATES:
            for users in USERS:
                if f"{state}-{users}.json" not in outputs:
                    continue
                job = fio.sample(outputs[f"{state}-{users}.json"], "write",
                                 (FRESH_MS if state == "fresh" else STEADY_MS) / 1000)
                written += 4096 * job["ios"] if state == "steady" else 0
                found.append({"ftl": drive, "state": state, "users": users, **job})
        programmed = [counters.flash(outputs[f"{x}.log"])["programmed_bytes"] for x in ("before", "after")]
        found.append({"ftl": drive, "state": "steady", "users": 0,
                      "write_amplification": round((programmed[1] - programmed[0]) / written, 4)})
    return found


def _of(found: list[Sample], drive: str, state: str, users: int) -> Sample:
    return next(s for s in found if (s["ftl"], s["state"], s["users"]) == (drive, state, users))


def _label(drive: str) -> str:
    late = ", collects late" if drive == LATE else ""
    return "host: dm-mtftl" if drive == HOST else f"drive: {_service(drive)} us a command{late}"


def checks(found: list[Sample], quick: bool) -> list[Check]:
    most = max(_users(quick))
    drives = [drive for drive in _drives(quick) if drive not in (HOST, LATE)]
    result = [within(f"fresh, {most} users: drive with {us} us a command (kIOPS)",
                     _of(found, us, "fresh", most)["iops"] / 1000, 1000 / int(us), 0.05,
                     form("its core takes one command at a time, and its buffer the rest"))
              for us in drives if int(us) >= 4]
    result += [
        at_least(f"fresh, {most} users: host over a drive with 8 us", _of(found, HOST, "fresh", most)["iops"] /
                 _of(found, "8", "fresh", most)["iops"], 2, ours("eight cores of the host against one of the drive")),
        at_most("fresh, 1 user: host over a drive with 1 us", _of(found, HOST, "fresh", 1)["iops"] /
                _of(found, "1", "fresh", 1)["iops"], 2,
                ours("one user waits for one core, wherever it is: the host only saves the way to the drive")),
        at_most("steady: the drive's write amplification over the host's",
                _of(found, "1", "steady", 0)["write_amplification"] /
                _of(found, HOST, "steady", 0)["write_amplification"], 1,
                ours("the drive needs no headers, footers, checkpoints or zones kept free for lanes"),
                "" if quick else
                f"It collects from 75% of its blocks on, as FEMU does. From 95% on it writes "
                f"{_of(found, LATE, 'steady', 0)['write_amplification']:.2f} blocks for one in place of "
                f"{_of(found, '1', 'steady', 0)['write_amplification']:.2f}; the host writes "
                f"{_of(found, HOST, 'steady', 0)['write_amplification']:.2f}."),
    ]
    if not quick:
        result.append(at_most("steady, 1 us: write amplification, collecting late over early",
                              _of(found, LATE, "steady", 0)["write_amplification"] /
                              _of(found, "1", "steady", 0)["write_amplification"], 0.8,
                              ours("blocks that are collected later have gone stale further"), late=KNOWN))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    users = sorted({s["users"] for s in found if s["users"]})
    rows = [["FTL", "state", *(f"{n} users kIOPS" for n in users), *(f"{n} p99 us" for n in users),
             "write amplification"]]
    for drive in dict.fromkeys(s["ftl"] for s in found):
        for state in STATES:
            of = [_of(found, drive, state, n) for n in users]
            rows.append([_label(drive), state, *(f"{s['iops'] / 1000:.1f}" for s in of),
                         *(f"{s['p99_us']:.0f}" for s in of),
                         f"{_of(found, drive, state, 0)['write_amplification']:.2f}" if state == "steady" else "-"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(4, columns=2)
    users = sorted({s["users"] for s in found if s["users"]})
    for row, (key, scale, label) in enumerate((("iops", 1000, "4 KiB writes (1000/s)"), ("p99_us", 1, "p99 (us)"))):
        for column, state in enumerate(STATES):
            figures.lines(panels[2 * row + column],
                          [figures.Line(_label(drive), users, [_of(found, drive, state, n)[key] / scale for n in users])
                           for drive in dict.fromkeys(s["ftl"] for s in found)],
                          x="users", y=label, title=f"{state} drive", log2_x=True, columns=2,
                          legend=bool(row) and not column)
    figures.save(figure, path)


ABOUT = About(
    title="Host against firmware",
    question="The same flash, its FTL in the drive or in the host: where does which win?",
    by=("ftl", "state", "users"),
    caption="4 KiB random writes by psync users on 8 CPUs. TLC flash, 8 dies, 128 erase blocks of 3 MiB over all dies "
            "(a 128th of the profile's pages each, and of its erase time); a quarter of the flash is spare, in "
            "both. The drive's FTL maps pages, on one core of its controller, which takes 1 to 8 us for each "
            "command; late: it collects when 95% of its blocks are in use, not 75%. Steady: all of it was written in "
            f"order, and most of it at random. Medians of {SEEDS} seeds.")
