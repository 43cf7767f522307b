# SPDX-License-Identifier: GPL-2.0
"""The report on FEMU's black box at any size: its drive, its five loads, its four measures and its twenty figures.

FEMU has no write buffer, and charges all that a victim's collection takes to the dies at once: flash.buffer=0 and
flash.gc_at_once. A "second" in what is shown is one of the report's: at 1/32 of its size it takes 1/32 s.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..run import firmware
from . import counters, figures, fio
from .experiments import Check, Sample, at_least, at_most, form, says, shown, spread, within
from .sources import REPORT

MIB, PAGE, FILES, DIES = 1 << 20, 4096, 4, 16
READ_NS, PROGRAM_NS, ERASE_NS = 40_000, 200_000, 2_000_000
BEGIN = 75                                      # percent of lines in use where FEMU collects
RUN = 300                                       # seconds of each of the report's runs
TEN = 10                                        # seconds between two looks at what is collected
CEILING = DIES * PAGE / PROGRAM_NS * 1000       # MB/s: all dies programming
FIO = {"randread": "reads only", "randrw": "reads and writes", "randwrite": "writes only"}
SYSBENCH = {"sysbench-4": 4, "sysbench-32": 32}
LABELS = {**FIO, "sysbench-4": "sysbench, 4 threads", "sysbench-32": "sysbench, 32 threads"}
SKEWED = "skewed"                               # not the report's
NAMES = {**LABELS, SKEWED: "writes only, 90% to a tenth"}
_JOBS = {**{load: {"rw": load} for load in FIO},
         SKEWED: {"rw": "randwrite", "random_distribution": "zoned:90/10:10/90"}}
FEMU = "femu"                                   # the mode in which collection is charged as FEMU does
AS_FEMU = {"flash.gc_at_once": "on", "flash.buffer": "0"}
MEASURES = {"iops": ("requests", "1000/s", 1000), "mb_s": ("throughput", "MB/s", 1),
            "erased_blocks": ("erased", "blocks", 1), "moved_pages": ("moved", "1000 pages", 1000)}
RATES, COLLECTED = ("iops", "mb_s"), ("erased_blocks", "moved_pages")
_SAMPLER = f"look() {{ {counters.flash_log('$1')}; }}\n" + """\
looking() { while [ ! -e stop ]; do look looks; sleep %g; done; look looks; }
start() { look mark; looking & }
finish() { touch stop; wait; }
"""


@dataclass(frozen=True)
class Size:
    """Drive, files and time are 1/scale of the report's; of its run so many seconds, with a look every `look` of them.

    Blocks of fewer pages take so much less time to erase.
    """

    scale: int
    seconds: float
    look: float
    block_pages: int
    mkfs: str                                   # of a drive of that size
    mount: str

    @property
    def drive(self) -> int:
        """Bytes of flash."""
        return 4096 * MIB // self.scale

    def device(self, mode: Mapping[str, str]) -> dict[str, str]:
        """Properties of the black box."""
        return {"zoned": "off", "flash.personality": "blackbox", "flash.size": f"{self.drive}", "flash.spare": "33",
                "flash.block_pages": f"{self.block_pages}", "flash.erase_ns": f"{ERASE_NS * self.block_pages // 256}",
                "flash.gc_begin": f"{BEGIN}", "flash.gc_urgent": "95", "flash.gc_gain": "8",
                "flash.hot_cold": "off", **mode}

    def script(self, load: str) -> str:
        """A file system, the load's files, and the load itself beside looks at the drive's counters."""
        seconds, file = self.seconds / self.scale, 576 * MIB // self.scale
        lines = ["set -e", _SAMPLER % (self.look / self.scale),
                 f"mke2fs -t ext4 -F -q {self.mkfs}-E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/nvme0n1",
                 f"mount {self.mount}/dev/nvme0n1 /mnt"]
        if load in _JOBS:
            files = {"directory": "/mnt", "size": file, "numjobs": FILES, "ioengine": "psync", "fallocate": "none"}
            lines += [fio.command("fill.json", rw="write", bs="128k", **files), "sync", "start",
                      fio.command("fio.json", **_JOBS[load], bs="16k", norandommap=True, time_based=True,
                                  runtime=f"{round(seconds * 1000)}ms", **files), "finish"]
        else:
            test = (f"sysbench fileio --file-total-size={FILES * file} --file-test-mode=rndrw "
                    f"--file-extra-flags=direct --file-fsync-all=on --rand-seed={fio.seed(42)} "
                    f"--threads={SYSBENCH[load]} --time={math.ceil(seconds)}")
            lines += [f"(cd /mnt && {test} prepare) >/dev/null", "sync", "start",
                      f"(cd /mnt && {test} run) >/dev/null", "finish"]
        return "\n".join([*lines, "umount /mnt"])

    def samples(self, load: str, mode: str, outputs: Mapping[str, bytes]) -> list[Sample]:
        """What a look found after the one before, what ten seconds collected, and the run as a whole."""
        mark, *looks = _looks(outputs["mark"] + outputs["looks"])
        points = list(_points(mark, looks))
        late = [s for s in points if s["at"] >= points[-1]["at"] / 2]
        run: Sample = {"part": "all",
                       **{key: round(_mean(points, key), 3) for key in (*RATES, "read_mb_s", "write_mb_s")},
                       **{f"peak_{key}": round(max(s[key] for s in points), 3) for key in RATES},
                       **{f"plateau_{key}": round(_mean(late, key), 3) for key in RATES},
                       **{key: sum(s[key] for s in points) for key in COLLECTED},
                       "filled": round(mark["written_bytes"] / self.drive, 5)}
        written = sum(s["written_pages"] for s in late)
        if written:
            run["write_amplification"] = round(1 + sum(s["moved_pages"] for s in late) / written, 4)
        cliff = next((s["programmed_bytes"] / self.drive for s in points if s["erases"]), None)
        if cliff is not None:
            run["first_erased_at"] = round(cliff, 5)
        if _JOBS.get(load, {}).get("rw") in ("randrw", "randwrite"):
            latency = fio.sample(outputs["fio.json"], "write")
            run |= {key: value for key, value in latency.items() if key.endswith("_us")}
        found = [run, *({"part": "look", "step": step, "at": round(s["at"] * self.scale, 3),
                        "seconds": round(s["seconds"] * self.scale, 3), "iops": round(s["iops"], 1),
                        "mb_s": round(s["mb_s"], 2)} for step, s in enumerate(points))]
        together = round(TEN / self.look)
        for step in range(len(points) // together):
            ten = points[step * together:(step + 1) * together]
            found.append({"part": "ten", "step": step, "at": round(ten[-1]["at"] * self.scale, 3),
                          "seconds": round(sum(s["seconds"] for s in ten) * self.scale, 3),
                          **{key: sum(s[key] for s in ten) for key in COLLECTED}})
        return [{"workload": load, "mode": mode, **s} for s in found]

    def amplified(self, filled: float, open_lines: int = 1) -> float:
        """Write amplification of uniform writes where so many lines are open, by the closed form of greedy GC."""
        lines = self.drive // (DIES * PAGE * self.block_pages)
        return firmware.greedy((lines * BEGIN / 100 - open_lines) / lines / filled, DIES * self.block_pages)

    def closed_forms(self, found: Sequence[Sample]) -> list[Check]:
        """Where the cliff has to be, and what the plateau is behind it."""
        writes = of(found, "randwrite")
        late = self.look / self.scale * CEILING * 1e6 / self.drive
        amplified = writes["write_amplification"]
        took = amplified * (PROGRAM_NS + ERASE_NS / 256) + (amplified - 1) * READ_NS
        return [
            Check("writes only: programmed when the first block is erased, over the drive's size",
                  writes["first_erased_at"], BEGIN / 100 - 0.01, BEGIN / 100 + late,
                  form("the cliff is where three quarters of the lines are in use; seen a look later at most")),
            at_most("writes only: best rate over the media's ceiling", writes["peak_mb_s"] / CEILING, 1.02,
                    form("16 dies x 4 KiB / 200 us = 327.7 MB/s")),
            within("writes only: write amplification over the closed form", amplified /
                   self.amplified(writes["filled"]), 1, 0.05,
                   form("greedy collection of uniform writes, on the full lines when it begins")),
            Check("writes only: plateau over what its write amplification leaves of the dies",
                  writes["plateau_mb_s"] / (DIES * PAGE / took * 1000), 0.85, 1.02,
                  form("a page costs a program, a part of an erase, and for each that is moved a read; "
                       "four writers of four pages keep sixteen dies busy, if not always all")),
        ]


def _looks(data: bytes) -> list[dict[str, float]]:
    return [counters.flash(data[at:at + counters.COUNTERS]) for at in range(0, len(data), counters.COUNTERS)]


def _points(mark: dict[str, float], looks: Sequence[dict[str, float]]) -> Iterable[Sample]:
    """Rates between two looks while the job runs; a program is a page, and a line is a block of each die."""
    grown = [(before, after, counters.grown(before, after))
             for before, after in zip([mark, *looks], looks, strict=False)]
    busy = [step for step in grown if step[2]["read_bytes"] + step[2]["written_bytes"]]
    start = busy[0][0]["now"]                   # the job had not begun yet
    for _, after, more in busy[:-1]:            # it ended before the last look
        seconds = more["now"] / 1e9
        bytes_ = more["read_bytes"] + more["written_bytes"]
        yield {"at": (after["now"] - start) / 1e9, "seconds": seconds,
               "iops": (more["reads"] + more["writes"]) / seconds, "mb_s": bytes_ / seconds / 1e6,
               "read_mb_s": more["read_bytes"] / seconds / 1e6, "write_mb_s": more["written_bytes"] / seconds / 1e6,
               "erased_blocks": more["erases"], "written_pages": more["written_bytes"] // PAGE,
               "moved_pages": max(0, more["programmed_bytes"] - more["written_bytes"]) // PAGE,
               "programmed_bytes": after["programmed_bytes"], "erases": after["erases"]}


def _mean(points: Sequence[Sample], key: str) -> float:
    return float(sum(s[key] * s["seconds"] for s in points) / sum(s["seconds"] for s in points))


def of(found: Sequence[Sample], load: str, mode: str = FEMU) -> Sample:
    """A run as a whole."""
    return next(s for s in found if (s["workload"], s["mode"], s["part"]) == (load, mode, "all"))


def points(found: Sequence[Sample], load: str, part: str, mode: str = FEMU) -> list[Sample]:
    """What each look, or each ten seconds, found of a run."""
    return [s for s in found if (s["workload"], s["mode"], s["part"]) == (load, mode, part)]


def sentences(found: Sequence[Sample]) -> list[Check]:
    """What the report says of its twenty figures, in its order."""
    cliffs = "write cliffs are not observed in IOPS and throughput, and both graphs show consistent performance levels"
    peak = "both IOPS and throughput reach a peak, followed by a sharp decline, and then stabilize at a plateau"
    drop = "IOPS and throughput also show a sharp drop due to GC, followed by stabilization at a certain level"
    lower = "IOPS and throughput at write 100% show lower values compared to those at 50% read/50% write"
    higher = "both metrics at write 100% as higher than those at 50% read/50% write"
    result = []
    for key in RATES:
        reads = points(found, "randread", "look")[1:-1]
        result.append(at_least(f"reads only: {_named(key)}, least over mean", min(s[key] for s in reads) /
                               _mean(reads, key), 0.95, says(REPORT, cliffs)))
    result += [at_most(f"reads only: {_named(key)}", of(found, "randread")[key], 0,
                       says(REPORT, "Both graphs above show zero values throughout the test duration"))
               for key in COLLECTED]
    result += _as_it_falls(found, "randrw", peak)
    result += _as_collection_begins(found, "randrw", "both metrics show a sharp increase shortly after the benchmark "
                                    "begins, followed by a stable plateau")
    result += [_fallen(found, "randwrite", key, "Both graphs above exhibit write cliffs caused by GC") for key in RATES]
    result += [at_most(f"writes only over reads and writes: {_named(key)}",
                       _over(found, "randwrite", "randrw", key), 1, says(REPORT, lower)) for key in RATES]
    result += [at_least(f"writes only over reads and writes: {_named(key)}",
                        _over(found, "randwrite", "randrw", key), 1, says(REPORT, higher)) for key in COLLECTED]
    result += _as_it_falls(found, "sysbench-4", drop)
    result += _as_collection_begins(found, "sysbench-4", "both metrics rise sharply as GC is performed and then "
                                    "stabilize at a certain level")
    return [*result, *_more_threads(found)]


def _more_threads(found: Sequence[Sample]) -> list[Check]:
    result = []
    for key in RATES:
        more = _over(found, "sysbench-32", "sysbench-4", key)
        result += [
            at_least(f"sysbench: 32 threads over 4, {_named(key)}, at least", more, 1.25,
                     says(REPORT, "significantly higher IOPS and throughput compared to those of 4 threads")),
            at_most(f"sysbench: 32 threads over 4, {_named(key)}, at most", more, 7.9,
                    says(REPORT, "despite an 8-fold increase in threads from 4 to 32, the metrics did not increase "
                         "proportionally")),
        ]
    return result + [at_least(f"sysbench: 32 threads over 4, {_named(key)}",
                              _over(found, "sysbench-32", "sysbench-4", key), 1,
                              says(REPORT, "a higher volume of writes and, as a result, higher metrics than the "
                                   "4-thread configuration")) for key in COLLECTED]


def _over(found: Sequence[Sample], load: str, other: str, key: str) -> float:
    """A measure of one load over that of another one, for as long as both ran."""
    both = [points(found, name, "look" if key in RATES else "ten") for name in (load, other)]
    end = min(steps[-1]["at"] for steps in both) + both[0][0]["seconds"] / 2
    most = [statistics.fmean(s[key] for s in steps if s["at"] < end) for steps in both]
    return most[0] / most[1] if most[1] else math.inf


def _named(key: str) -> str:
    return {"iops": "requests a second", "mb_s": "throughput", "erased_blocks": "blocks erased",
            "moved_pages": "pages moved"}[key]


def _plateau(steps: Sequence[Sample], key: str) -> tuple[float, float]:
    """The mean of the second half, and its coefficient of variation: of rates, or of what was counted a second."""
    late = [s[key] / (1 if key in RATES else s["seconds"]) for s in steps if s["at"] >= steps[-1]["at"] / 2]
    mean = statistics.fmean(late)
    return mean, statistics.pstdev(late) / mean if mean else math.inf


def _fallen(found: Sequence[Sample], load: str, key: str, words: str) -> Check:
    run = of(found, load)
    return at_most(f"{LABELS[load]}: {_named(key)}, plateau over peak", run[f"plateau_{key}"] / run[f"peak_{key}"], 0.8,
                   says(REPORT, words))


def _as_it_falls(found: Sequence[Sample], load: str, words: str) -> list[Check]:
    """How deep the two rates fall, how soon after their peak, and how well they stay there."""
    looks = points(found, load, "look")
    result = []
    for key in RATES:
        plateau, variation = _plateau(looks, key)
        top = max(range(len(looks)), key=lambda n: float(looks[n][key]))
        fallen = next((s["at"] for s in looks[top:] if s[key] <= 1.25 * plateau), math.inf)
        result += [
            _fallen(found, load, key, words),
            at_most(f"{LABELS[load]}: {_named(key)}, share of the run from the peak to a quarter above the plateau",
                    (fallen - looks[top]["at"]) / looks[-1]["at"], 0.1, says(REPORT, words)),
            at_most(f"{LABELS[load]}: {_named(key)}, coefficient of variation in the second half", variation, 0.1,
                    says(REPORT, words)),
        ]
    return result


def _as_collection_begins(found: Sequence[Sample], load: str, words: str) -> list[Check]:
    """How soon the two measures of collection are where they stay, and how well they stay there."""
    tens = points(found, load, "ten")
    result = []
    for key in COLLECTED:
        plateau, variation = _plateau(tens, key)
        risen = next((s["at"] for s in tens if s[key] / s["seconds"] >= 0.8 * plateau > 0), math.inf)
        result += [
            at_most(f"{LABELS[load]}: {_named(key)}, share of the run until four fifths of the plateau", risen /
                    tens[-1]["at"], 0.2, says(REPORT, words)),
            at_most(f"{LABELS[load]}: {_named(key)}, coefficient of variation in the second half", variation, 0.2,
                    says(REPORT, words)),
        ]
    return result


def known(checks: Iterable[Check], names: Iterable[str], late: str) -> list[Check]:
    """The checks, with those marked that were not predictions any more."""
    names = set(names)
    return [replace(check, late=late) if check.name in names else check for check in checks]


def table(found: Sequence[Sample], modes: Mapping[str, str]) -> list[list[str]]:
    """A row a run."""
    rows = [["workload", "GC", "IOPS", "read MB/s", "write MB/s", "peak", "plateau", "blocks erased", "pages moved",
             "write amplification", "p99.9 of writes, ms"]]
    for mode, load in ((mode, load) for mode in modes for load in NAMES):
        for s in (s for s in found if (s["workload"], s["mode"], s["part"]) == (load, mode, "all")):
            rows.append([NAMES[load], modes[mode],
                         *(shown(s, key) for key in ("iops", "read_mb_s", "write_mb_s", "peak_mb_s", "plateau_mb_s")),
                         *(shown(s, key, ".0f") for key in COLLECTED),
                         shown(s, "write_amplification", ".2f") if "write_amplification" in s else "-",
                         shown(s, "p99.9_us", ".2f", 1000) if "p99.9_us" in s else "-"])
    return rows


def draw(found: Sequence[Sample], path: Path, modes: Mapping[str, str]) -> None:
    """The report's figures 5.1 to 5.20 in its order: a row a load, a column a measure."""
    figure, panels = figures.panels(len(LABELS) * len(MEASURES), height=1.7, columns=len(MEASURES))
    figure.set_size_inches(1.2 * figures.PAGE, 1.75 * len(LABELS))
    which = [(load, key) for load in LABELS for key in MEASURES]
    for number, (panel, (load, key)) in enumerate(zip(panels, which, strict=True), 1):
        title, unit, scale = MEASURES[key]
        lines = [_line(points(found, load, "look" if key in RATES else "ten", mode), key, scale, modes, mode)
                 for mode in modes]
        below = len(which) - number < len(MEASURES)
        figures.lines(panel, lines, x="time (s)" if below else "", y=f"{title} ({unit})",
                      title=f"5.{number} {LABELS[load].replace(', ', ' ').replace(' threads', '')}",
                      legend=len(modes) > 1 and number == len(which) - len(MEASURES) + 2)
        panel.set_xlim(left=0)
        if not any(y for line in lines for y in line.y):
            panel.set_ylim(0, 1)
    figures.save(figure, path)


def _line(steps: Sequence[Sample], key: str, scale: float, modes: Mapping[str, str], mode: str) -> figures.Line:
    """The steps of a run in one mode; none of a load that it does not have."""
    spreads = [tuple(value / scale for value in spread(s, key)) for s in steps]
    return figures.Line(modes[mode], [s["at"] for s in steps], [s[key] / scale for s in steps], marker=False,
                        dashed=mode != FEMU, spread=[(least, most) for least, most in spreads],
                        colour=list(modes).index(mode))
