# SPDX-License-Identifier: GPL-2.0
"""Beside pblk itself: the FTL of Linux 4.12 to 5.14 for Open-Channel drives, which the single-threaded architecture is.

pblk runs on an Open-Channel drive under Linux 5.10, ours on a zoned drive under 6.12: the same dies, channels, times
and drive buffer; the same CPUs, the same number of buffer entries, the same write unit. What the kernels differ by is
measured too: the same jobs under both on dm-flakey, as it drops all writes. mt-ftl-users has drives without delay,
equal kernels and the clock with caches.

4 KiB random writes on an empty drive; and on one that has been written in full and then at random, where both collect
garbage. There the drive's own counters say what is programmed for a block of the user's. And what the paper of
`scaling` shows of pblk alone: its rate by write unit and users, and how full its buffer is.
"""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from mtlab.exp import counters, figures, fio, pblk
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown, spread
from mtlab.exp.sources import KNOWN, MT_FTL
from mtlab.run.options import Options

CPUS, ENTRIES = 8, 1024
USERS, QUICK_USERS = (1, 2, 4, 8, 16, 32), (1, 8)
MOST = USERS[-1]                # users in the paper's figure
SEEDS = 3
FRESH_UNITS = (1, 8)
WINDOW_MS, QUICK_WINDOW_MS = 50, 25
UNITS, UNITS_USERS, UNITS_MS = (1, 2, 8, 32), (1, 2, 8, 32, 64), 30
FILLED, FILLED_UNITS, FILLED_USERS, FILLED_MS = "filled", (1, 8), (1, 2, 4, 8), 200
TICK = 0.01                     # seconds, of what the kernel tells of a thread
LABELS = {"multi": f"dm-mtftl, {CPUS} lanes", "pblk": "pblk (Linux 5.10)"}
KERNELS = {"pblk": pblk.KERNEL, "multi": "6.12"}
# Both have eight dies and 3840 MiB, and hold as much of the user's. pblk takes up four lines a second at most,
# so its have to be large, as they are on real drives; erases take their time in proportion.
STEADY_UNIT, STEADY_USERS, STEADY_MIB, STEADY_MS, AGE_MIB = 8, (1, 8), 2400, 300, 2400
STEADY = {"flash.channels": "4", "flash.dies": "2"}
STEADY_SIZE = {"pblk": {"flash.size": "3840M", "flash.block_pages": "384", "flash.erase_ns": "1749984"},
               "multi": {"flash.size": "5120M", "flash.block_pages": "12", "flash.erase_ns": "54687",
                         "zoned.zone_size": "8M", "zoned.zone_capacity": "6M"}}


def _open(line: str, unit: int) -> str:
    if line == "pblk":
        return pblk.NEW
    return ("mtftl format --force  /dev/nvme0n1\n"
            f"mtftl open /dev/nvme0n1 ftl lanes={CPUS} buffer_entries={ENTRIES} write_unit={unit}")


def _disk(line: str) -> str:
    return pblk.DISK if line == "pblk" else "/dev/mapper/ftl"


def _options(line: str, profile: str, device: Mapping[str, str], unit: int) -> Options:
    append = pblk.append(ENTRIES) if line == "pblk" else ""
    extra = pblk.OPEN_CHANNEL | {"flash.ws_opt": f"{unit}"} if line == "pblk" else {}
    return Options(clock="virtual", cpus=CPUS, profile=profile, timeout=3600, kernel=KERNELS[line],
                   device=dict(device) | extra, append=append)


def _close(line: str) -> str:
    return "guest-pblk remove ftl" if line == "pblk" else "mtftl close ftl"


def _fresh(line: str, unit: int, quick: bool) -> Run:
    """A new FTL for each number of users."""
    device = pblk.GEOMETRY["tlc"] | {"flash.size": f"{pblk.SIZE_MIB}M"} if line == "pblk" else {}
    job = fio.command("$users.json", filename=_disk(line), rw="randwrite", bs="4k", ioengine="psync", norandommap=True,
                      numjobs="$users", time_based=True, ramp_time="10ms",
                      runtime=f"{QUICK_WINDOW_MS if quick else WINDOW_MS}ms", size="1G")
    users = " ".join(map(str, QUICK_USERS if quick else USERS))
    script = f"set -e\nfor users in {users}; do\n{_open(line, unit)}\n{job}\n{_close(line)}\ndone"
    return Run(f"fresh-tlc-{line}-{unit}", script, _options(line, "tlc", device, unit), ("*.json",),
               seeds=1 if quick else SEEDS, seconds=20)


def _pblk_alone(state: str, profile: str, unit: int, lines: list[str], pull: tuple[str, ...]) -> Run:
    return Run(f"{state}-{profile}-pblk-{unit}", "\n".join(["set -e", *lines]),
               _options("pblk", profile, pblk.GEOMETRY[profile] | {"flash.size": f"{pblk.SIZE_MIB}M"}, unit), pull,
               seeds=SEEDS, seconds=15)


def _job(users: int, window_ms: int) -> str:
    return fio.command(f"{users}.json", filename=_disk("pblk"), rw="randwrite", bs="4k", ioengine="psync",
                       norandommap=True, numjobs=users, time_based=True, runtime=f"{window_ms}ms", size="1G")


def _units(unit: int) -> Run:
    """pblk is new for each number of users: nothing is collected."""
    lines = [f"{_open('pblk', unit)}\n{_job(users, UNITS_MS)}\n{_close('pblk')}"
             for users in UNITS_USERS]
    return _pblk_alone("units", "dram", unit, lines, ("*.json",))


def _filled(unit: int) -> Run:
    """A look is the writer's ticks, then what pblk says of its buffer; those count between which anything came in."""
    lines = [_open("pblk", unit), "writer=$(grep -l pblk-writer /proc/[0-9]*/comm)"]
    for users in FILLED_USERS:
        lines += [f"{_job(users, FILLED_MS)} &",
                  'while kill -0 $! 2>/dev/null; do read -r x </sys/block/ftl/pblk/write_buffer',
                  '    read -r -a y <"${writer%comm}stat"; echo "$EPOCHREALTIME ${y[14]} $x"',
                  f"done >{users}.looks", "wait"]
    return _pblk_alone(FILLED, "tlc", unit, lines, ("*.json", "*.looks"))


def _buffer(looks: bytes) -> Sample:
    """Entries in use, the share of looks that found no room for a block, and that of the time that the writer ran."""
    found = [line.split() for line in looks.decode().splitlines()]
    moved = [now for before, now in zip(found, found[1:], strict=False) if now[3] != before[3]]
    room = [int(of[10].split("/")[1]) for of in moved]
    took = float(moved[-1][0]) - float(moved[0][0])
    return {"used": sum(ENTRIES - 1 - x for x in room) / len(room), "full": sum(x < 2 for x in room) / len(room),
            "writer": (int(moved[-1][1]) - int(moved[0][1])) * TICK / took}


def _steady(line: str) -> Run:
    common = {"filename": _disk(line), "size": f"{STEADY_MIB}M", "norandommap": True}
    jobs = [fio.command("fill.out", **common, rw="write", bs="128k", ioengine="libaio", iodepth=4),
            # one thread: those that wait for pblk's room spin
            fio.command("age.out", **common, rw="randwrite", bs="4k", ioengine="libaio", iodepth=16,
                        io_size=f"{AGE_MIB}M")]
    for users in STEADY_USERS:
        job = fio.command(f"{users}.json", **common, rw="randwrite", bs="4k", ioengine="psync", numjobs=users,
                          time_based=True, runtime=f"{STEADY_MS}ms")
        jobs += [counters.flash_log(f"{users}.before"), job, counters.flash_log(f"{users}.after")]
    opened = _open(line, STEADY_UNIT)
    if line == "pblk":
        opened = "guest-pblk new nvme0n1 ftl 0 7 25"
    return Run(f"steady-tlc-{line}-{STEADY_UNIT}", "\n".join(["set -e", opened, *jobs]),
               _options(line, "tlc", STEADY | STEADY_SIZE[line], STEADY_UNIT),
               ("*.json", "*.before", "*.after"), seeds=SEEDS, seconds=150)


def _programmed(outputs: Mapping[str, bytes], users: int) -> int:
    """Bytes that the flash programmed while so many users wrote."""
    looks = (counters.flash(outputs[f"{users}.{when}"]) for when in ("before", "after"))
    return int(counters.grown(*looks)["programmed_bytes"])


def _floor(kernel: str, users: tuple[int, ...], window_ms: int) -> Run:
    """The same jobs on a device that ends each write at once: what fio and the kernel take without any FTL."""
    job = fio.command("$users.json", filename="/dev/mapper/drop", rw="randwrite", bs="4k", ioengine="psync",
                      norandommap=True, numjobs="$users", time_based=True, ramp_time="10ms",
                      runtime=f"{window_ms}ms", size="1G")
    script = f"""set -e
[ -b /dev/nullb0 ] || modprobe null_blk
echo '0 2097152 flakey /dev/nullb0 0 0 1000000 1 drop_writes' | dmsetup create drop
for users in {' '.join(map(str, users))}; do
    {job}
done"""
    return Run(f"floor-{kernel}", script,
               Options(clock="virtual", cpus=CPUS, profile="none", timeout=3600, kernel=kernel, module=False),
               ("*.json",), seconds=10)


def runs(quick: bool) -> list[Run]:
    users, window_ms = (QUICK_USERS, QUICK_WINDOW_MS) if quick else (USERS, WINDOW_MS)
    found = [_fresh(line, unit, quick) for unit in (FRESH_UNITS[:1] if quick else FRESH_UNITS) for line in LABELS]
    if not quick:
        found += [_steady(line) for line in STEADY_SIZE]
        found += [_units(unit) for unit in UNITS] + [_filled(unit) for unit in FILLED_UNITS]
    return found + [_floor(kernel, users, window_ms) for kernel in ("pblk", "6.12")]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for name, outputs in files.items():
        state, *words = name.split("-")
        for output, data in outputs.items():
            if not output.endswith(".json"):
                continue
            one = fio.sample(data, "write", fio.seconds(data))
            of: Sample
            if state == "steady":
                users = int(Path(output).stem)
                of = {"profile": words[0], "line": words[1], "unit": int(words[2]), "users": users,
                      "programmed": _programmed(outputs, users) / (4096 * one["ios"])}
            elif state in ("units", "fresh", FILLED):
                of = {"profile": words[0], "line": words[1], "unit": int(words[2]), "users": int(Path(output).stem)}
                if state == FILLED:
                    of |= _buffer(outputs[f"{of['users']}.looks"])
            else:
                of = {"profile": "none", "line": words[0], "unit": 0, "users": int(Path(output).stem)}
            found.append({"state": state, **of, **one})
    return sorted(found, key=lambda s: (s["state"], s["profile"], s["unit"], s["line"], s["users"]))


def _iops(found: list[Sample], state: str, profile: str, unit: int, line: str) -> dict[int, float]:
    return {s["users"]: s["iops"] for s in found
            if (s["state"], s["profile"], s["unit"], s["line"]) == (state, profile, unit, line)}


def _settings(found: list[Sample]) -> list[tuple[str, str, int]]:
    return sorted({(s["state"], s["profile"], s["unit"]) for s in found if s["state"] in ("fresh", "steady")})


def _by_kernel(found: list[Sample], users: int, ratio: float) -> str:
    """What is left of a ratio once each side is divided by what its kernel does without any FTL."""
    old, new = (_iops(found, "floor", "none", 0, kernel)[users] for kernel in ("pblk", "6.12"))
    return (f"Without any FTL Linux 5.10 does {old / new:.2f} times what 6.12 does. Divided by that, ours over pblk is "
            f"{ratio * old / new:.2f}.")


def _by_flash(found: list[Sample], users: int) -> str:
    """What the ratio can be where the flash is the limit: that of what both program for a block."""
    ours_, theirs = (next(s["programmed"] for s in found if (s["state"], s["line"], s["users"]) ==
                          ("steady", line, users)) for line in ("multi", "pblk"))
    return (f"pblk programs {theirs:.2f} blocks for one, ours {ours_:.2f}: if the dies alone bind both, that is "
            f"{theirs / ours_:.2f} times.")


_FEW = "a few users must not pay for lanes they do not use"


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    result = []
    for state, profile, unit in _settings(found):
        mine, theirs = (_iops(found, state, profile, unit, line) for line in ("multi", "pblk"))
        what = f"{state}, {profile}, write unit {unit}"
        result += [at_least(f"{what}: ours over pblk at {n} user{'s'[:n - 1]}", mine[n] / theirs[n], low, ours(why),
                            _by_kernel(found, n, mine[n] / theirs[n]) if state == "fresh" else _by_flash(found, n))
                   for n, low, why in ((8, 3, "pblk has one ring under one lock, and one writer"),
                                       (1, 1, _FEW), (2, 1, _FEW)) if n in mine]
    return result + _as_the_paper_says(found)


def _as_the_paper_says(found: list[Sample]) -> list[Check]:
    """Of pblk alone; its figures give directions, no numbers."""
    rates = {unit: _iops(found, "units", "dram", unit, "pblk") for unit in UNITS}
    used = {(s["unit"], s["users"]): s for s in found if s["state"] == FILLED}
    if not used:
        return []
    growth = {n: rates[UNITS[-1]][n] / rates[UNITS[0]][n] for n in UNITS_USERS}
    result = [
        at_least("pblk, dram, 8 users: write unit of 32 blocks over one", rates[32][8] / rates[1][8], 1,
                 says(MT_FTL, "In the most cases, WU is proportional to the I/O bandwidth")),
        at_least("pblk, dram: write unit of 32 blocks over one, least over the numbers of users", min(growth.values()),
                 1.5, says(MT_FTL, "regardless of the number of the use threads"),
                 "By users: " + ", ".join(f"{n}: {times:.2f}" for n, times in growth.items()) + ".", KNOWN),
        *(at_most(f"pblk, dram, write unit {unit}: 64 users over its best", rates[unit][64] / max(rates[unit].values()),
                  0.9, says(MT_FTL, "the I/O bandwidth significantly decreases with the more users even if WU "
                            "increases"),
                  f"Thousand a second by users: {', '.join(f'{n}: {r / 1000:.0f}' for n, r in rates[unit].items())}.")
          for unit in UNITS),
        at_least("pblk, tlc, write unit 1, 8 users: share of time in which the buffer is full", used[1, 8]["full"], 0.5,
                 says(MT_FTL, "the buffer fills up faster in the pblk and this phenomenon lasts until the 8 user "
                      "threads no longer request the write operations")),
        at_most("pblk, tlc, write unit 8, 1 user: entries in use", used[8, 1]["used"], ENTRIES / 10,
                says(MT_FTL, "the entries do accumulate not too much in the buffer")),
        at_least("pblk, tlc, write unit 8: entries in use at 8 users over 1", used[8, 8]["used"] / used[8, 1]["used"],
                 2, says(MT_FTL, "the I/O requests are still accumulated in the buffer as the number of the user "
                         "threads increases even if the consuming speed is accelerated")),
    ]
    mine, theirs = (_iops(found, "fresh", "tlc", 1, line) for line in ("multi", "pblk"))
    best = max((n for n in theirs if n <= MOST), key=lambda n: theirs[n])
    return [
        *result,
        at_most(f"pblk, tlc, write unit 1: {MOST} users over its best", theirs[MOST] / theirs[best], 0.75,
                says(MT_FTL, "the performance drops sharply as the number of the user threads increases"),
                f"It grows to {theirs[best] / 1000:.0f} thousand a second at {best} users, and is at "
                f"{theirs[MOST] / 1000:.0f} thousand at {MOST}.", KNOWN),
        *(at_least(f"fresh, tlc, write unit 1: ours over pblk at {n} users, as in the paper",
                   mine[n] / theirs[n], 2, says(MT_FTL, "in twice or more compared to the existing host-level FTL"),
                   _by_kernel(found, n, mine[n] / theirs[n]), KNOWN) for n in (8, 16, MOST)),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["state", "device", "unit", "users", *(f"{LABELS[line]}, kIOPS" for line in LABELS), "ours/pblk",
             "no FTL, 5.10 / 6.12, kIOPS", "p99.9, ours / pblk, us", "programmed for a block, ours / pblk",
             "pblk's buffer: entries in use, time full; its writer runs"]]
    at = {(s["state"], s["profile"], s["unit"], s["line"], s["users"]): s for s in found}
    floor = {kernel: _iops(found, "floor", "none", 0, kernel) for kernel in ("pblk", "6.12")}
    for state, profile, unit in _settings(found):
        for n in sorted(_iops(found, state, profile, unit, "pblk")):
            of = [at.get((state, profile, unit, line, n)) for line in LABELS]
            ours, theirs = at[state, profile, unit, "multi", n], at[state, profile, unit, "pblk", n]
            rows.append([state, profile, str(unit), str(n),
                         *(shown(s, "iops", scale=1000) if s else "-" for s in of),
                         f"{ours['iops'] / theirs['iops']:.2f}",
                         " / ".join(f"{floor[kernel][n] / 1000:.0f}" for kernel in floor),
                         f"{ours['p99.9_us']:.0f} / {theirs['p99.9_us']:.0f}",
                         f"{ours['programmed']:.2f} / {theirs['programmed']:.2f}" if state == "steady" else "-",
                         "-"])
    for s in found:
        if s["state"] == FILLED or (s["state"] == "units" and s["users"] in (1, 8, 64)):
            rows.append([s["state"], s["profile"], str(s["unit"]), str(s["users"]), "-",
                         shown(s, "iops", scale=1000), "-", "-", f"- / {s['p99.9_us']:.0f}", "-",
                         f"{s['used']:.0f}, {s['full']:.0%}, {s['writer']:.0%}" if s["state"] == FILLED else "-"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    settings = [x for x in _settings(found) if x[0] == "fresh"]
    surface = {s["unit"]: _iops(found, "units", "dram", s["unit"], "pblk") for s in found if s["state"] == "units"}
    steady = {(s["line"], s["users"]): s for s in found if s["state"] == "steady"}
    figure, axes = figures.panels(len(settings) + 1 + 2 * bool(steady) + 2 * bool(surface))
    for panel, (state, profile, unit) in zip(axes, settings, strict=False):
        _panel(panel, found, [(label, state, profile, unit, line) for line, label in LABELS.items()],
               f"fresh drive: {profile}, write unit {unit}")
    rest = iter(axes[len(settings):])
    _panel(next(rest), found, [(f"no FTL, {label}", "floor", "none", 0, line)
                               for line, label in (("6.12", "Linux 6.12"), ("pblk", "Linux 5.10"))],
           "difference between the kernels", 6)
    if steady:
        names = [f"{n} user{'s'[:n - 1]}" for n in STEADY_USERS]
        for key, scale, label, title in (("iops", 1000, "4 KiB random writes (kIOPS)", "used drive: tlc, write unit 8"),
                                         ("programmed", 1, "blocks programmed for one written", "used drive")):
            figures.bars(next(rest), names, [
                figures.Bars(LABELS[line], [steady[line, n][key] / scale for n in STEADY_USERS],
                             [(x / scale, y / scale) for x, y in (spread(steady[line, n], key) for n in STEADY_USERS)])
                for line in ("multi", "pblk")], y=label, title=title)
    if surface:
        figures.heat(next(rest), UNITS_USERS, UNITS, [[surface[unit][n] / 1000 for n in UNITS_USERS] for unit in UNITS],
                     x="users", y="write unit (blocks)", value="kIOPS", title="pblk alone, dram")
        figures.lines(next(rest), [
            figures.Line(f"write unit {unit}", FILLED_USERS,
                         [s["used"] for s in found if s["state"] == FILLED and s["unit"] == unit])
            for unit in FILLED_UNITS], x="users", y=f"entries in use, of {ENTRIES}", title="pblk's buffer, tlc",
            log2_x=True, columns=2)
    figures.save(figure, path)


def _panel(panel: Axes, found: list[Sample], wanted: list[tuple[str, str, str, int, str]], title: str,
           colour: int = -1) -> None:
    lines = []
    for number, (label, *of) in enumerate(wanted):
        points = sorted((s for s in found if [s["state"], s["profile"], s["unit"], s["line"]] == of),
                        key=lambda s: int(s["users"]))
        lines.append(figures.Line(label, [s["users"] for s in points], [s["iops"] / 1000 for s in points],
                                  spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)],
                                  colour=colour if colour < 0 else colour + number))
    figures.lines(panel, lines, x="users (fio jobs, queue depth 1)", y="4 KiB random writes (kIOPS)", title=title,
                  log2_x=True, ticks=lines[0].x)


ABOUT = About(
    title="Beside pblk",
    question="How many random writes does the same flash take under dm-mtftl, and how many under pblk, the FTL that "
             "the kernel had for drives of the Open-Channel kind?",
    by=("state", "profile", "unit", "line", "users"),
    caption=f"4 KiB random writes at queue depth 1 on {CPUS} modelled CPUs; {ENTRIES} buffer entries and the same "
            "write unit for all. pblk: Open-Channel drive, Linux 5.10; dm-mtftl: zoned drive, Linux 6.12; the same "
            "dies, channels and times. On a fresh drive nothing is collected. The used drive was written in full, "
            "then at random. pblk alone: its rate by write unit and users, and how full its buffer is.")
