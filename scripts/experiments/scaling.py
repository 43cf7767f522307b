# SPDX-License-Identifier: GPL-2.0
"""Single- against multi-threaded FTL: 4 KiB random writes by a growing number of users on 8 CPUs.

`lanes 1` is the single-threaded architecture (one buffer, one writer) in the same code; `lanes 8` is one
lane a CPU; the raw zoned device, written without any FTL, is the ceiling. 1024 buffer entries in all,
one block a write unit.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, ours, says, shown, spread
from mtlab.exp.sources import KNOWN, MT_FTL
from mtlab.run.options import Options

CPUS = 8
ENTRIES = 1024
USERS = (1, 2, 4, 8, 16, 32, 64)
MOST = 32               # in the paper
REPEATED = (8,)         # what the headline is about
SEEDS = 5
QUICK_USERS = (1, 2, 4, 8)
WINDOW_MS = 100         # several of the scheduler's slices for each of 64 users
QUICK_WINDOW_MS = 25
PROFILES = ("dram", "tlc")
LANES = {"single": 1, "multi": CPUS}
LABELS = {"multi": f"multi-threaded FTL ({CPUS} lanes)", "single": "single-threaded FTL (1 lane)",
          "raw": "raw zoned device, no FTL"}


def _script(line: str, users: tuple[int, ...], window_ms: int) -> str:
    """One boot's work: for each number of users a fresh FTL and one fio job."""
    common = {"bs": "4k", "ioengine": "psync", "rw": "randwrite", "numjobs": "$users", "time_based": True,
              "ramp_time": "10ms", "runtime": f"{window_ms}ms", "size": "1G"}
    if line == "raw":
        job = fio.command("$users.json", filename="/dev/nvme0n1", zonemode="zbd", max_open_zones=14, **common)
        body = f"blkzone reset /dev/nvme0n1\n{job}"
    else:
        job = fio.command("$users.json", filename="/dev/mapper/ftl", norandommap=True, **common)
        body = ("mtftl format --force /dev/nvme0n1\n"
                f"mtftl open /dev/nvme0n1 ftl lanes={LANES[line]} buffer_entries={ENTRIES} write_unit=1\n"
                f"{job}\nmtftl close ftl")
    return f"set -e\nfor users in {' '.join(map(str, users))}; do\n{body}\ndone"


def runs(quick: bool) -> list[Run]:
    others = tuple(users for users in (QUICK_USERS if quick else USERS) if users not in REPEATED)
    window_ms, seeds = (QUICK_WINDOW_MS, 1) if quick else (WINDOW_MS, SEEDS)
    return [Run(f"{profile}-{line}{part}", _script(line, users, window_ms),
                Options(clock="virtual", cpus=CPUS, profile=profile, timeout=3600, module=line != "raw"),
                seeds=seeds if users == REPEATED else 1)
            for profile in (PROFILES[1:] if quick else PROFILES) for line in LABELS
            for part, users in (("", others), ("-repeated", REPEATED))]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for name, outputs in files.items():
        profile, line = name.split("-")[:2]
        found += [{"profile": profile, "line": line, "users": int(Path(output).stem),
                   **fio.sample(data, "write", fio.seconds(data))} for output, data in outputs.items()]
    return sorted(found, key=lambda s: (s["profile"], s["line"], s["users"]))


def _iops(found: list[Sample], profile: str, line: str) -> dict[int, float]:
    return {s["users"]: s["iops"] for s in found if (s["profile"], s["line"]) == (profile, line)}


def checks(found: list[Sample], _quick: bool) -> list[Check]:
    result = []
    for profile in sorted({s["profile"] for s in found}):
        single, multi, raw = (_iops(found, profile, line) for line in ("single", "multi", "raw"))
        result += [
            at_least(f"{profile}: multi over single at 8 users", multi[8] / single[8], 6,
                     ours("independent lanes share nothing on the write path")),
            *(at_least(f"{profile}: multi over single at {u} user{'s'[:u - 1]}", multi[u] / single[u], 1,
                       ours("a few users must not pay for lanes they do not use")) for u in (1, 2)),
            at_least(f"{profile}: share of linear growth from 1 to 8 users", multi[8] / (8 * multi[1]), 0.85,
                     ours("each user has a CPU and a lane of its own")),
        ]
        beyond = [u for u in sorted(multi) if u >= CPUS]
        if len(beyond) > 1:
            result.append(at_least(f"{profile}: least growth beyond {CPUS} users", min(
                multi[b] / multi[a] for a, b in zip(beyond, beyond[1:], strict=False)), 0.98,
                ours("more users than CPUs queue; they must not collide")))
            result += _as_the_paper_says(profile, single, multi)
        if profile == "tlc":
            result.append(at_least("tlc: multi over the raw device at 8 users", multi[8] / raw[8], 0.95,
                                   ours("the FTL buffers writes that the raw device makes its users wait for")))
    return result


def _as_the_paper_says(profile: str, single: dict[int, float], multi: dict[int, float]) -> list[Check]:
    """Its figure 6, for 1 to 32 users; one lane in place of pblk, which `pblk` has."""
    users = [u for u in multi if u <= MOST]
    best = max(users, key=single.__getitem__)
    return [
        at_least(f"{profile}: multi, {MOST} users over 1", multi[MOST] / multi[1], 2,
                 says(MT_FTL, "MT-FTL significantly improves the performance with the increasing number of the user "
                      "threads"), late=KNOWN),
        at_most(f"{profile}: single, {MOST} users over its best", single[MOST] / single[best], 0.75,
                says(MT_FTL, "the performance drops sharply as the number of the user threads increases"),
                f"{single[best] / 1000:.0f} thousand a second with {best} users, {single[MOST] / 1000:.0f} with "
                f"{MOST}, on the clock without caches.", KNOWN),
        at_least(f"{profile}: least of multi over single from {CPUS} to {MOST} users",
                 min(multi[u] / single[u] for u in users if u >= CPUS), 2,
                 says(MT_FTL, "in twice or more compared to the existing host-level FTL"), late=KNOWN),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["device", "users", "single kIOPS", "multi kIOPS", "raw kIOPS", "multi/single"]]
    at = {(s["profile"], s["line"], s["users"]): s for s in found}
    for profile in sorted({s["profile"] for s in found}):
        single, multi = (_iops(found, profile, line) for line in LANES)
        rows += [[profile, str(u), *(shown(at[profile, line, u], "iops", scale=1000) for line in (*LANES, "raw")),
                  f"{multi[u] / single[u]:.2f}"] for u in sorted(multi)]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    profiles = sorted({s["profile"] for s in found})
    figure, axes = figures.panels(len(profiles))
    for panel, profile in zip(axes, profiles, strict=True):
        lines = []
        for line, label in LABELS.items():
            points = sorted((s for s in found if (s["profile"], s["line"]) == (profile, line)),
                            key=lambda s: int(s["users"]))
            lines.append(figures.Line(label, [s["users"] for s in points], [s["iops"] / 1000 for s in points],
                                      spread=[(x / 1000, y / 1000) for x, y in (spread(s, "iops") for s in points)]))
        figures.lines(panel, lines, x="users (fio jobs, queue depth 1)", y="4 KiB random writes (kIOPS)",
                      title=f"{profile}, {CPUS} CPUs", log2_x=True, ticks=lines[0].x)
    figures.save(figure, path)


ABOUT = About(
    title="Single- against multi-threaded FTL",
    question="Does one lane a CPU let write throughput grow with the number of users, "
             "where one buffer and one writer do not?",
    by=("profile", "line", "users"),
    caption=f"4 KiB random writes, {CPUS} modelled CPUs of one instruction a nanosecond, {ENTRIES} buffer entries "
            "in all, one block a write unit. Virtual time: the transfer of cache lines between CPUs costs nothing. "
            f"{REPEATED[0]} users: the median of {SEEDS} seeds, bars from the least to the most.")
