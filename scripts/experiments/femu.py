# SPDX-License-Identifier: GPL-2.0
"""The report on FEMU's black box on a black box: five workloads, four measures, and the cliff at the threshold.

The report's drive and jobs, scaled as write-cliff scales them: capacity, files and time are 1/SCALE of the
report's, the first SHARE of its run; blocks are an eighth of the report's and take an eighth of its time to erase. FEMU
has no write buffer, and charges all that a victim's collection takes to the dies at once: flash.buffer=0 and
flash.gc_at_once. Two workloads run a second time on the same drive as it should be: moves are reads and
programs that wait for each other, and a buffer takes the writes.
"""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import counters, figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, says, shown, within
from mtlab.exp.sources import KNOWN, REPORT
from mtlab.run.options import Options

SCALE, SHARE = 32, 0.2
SECONDS = SHARE * 300 / SCALE
MIB, PAGE = 1 << 20, 4096
DEVICE, FILES, FILE = 4096 * MIB // SCALE, 4, 576 * MIB // SCALE
DIES, BLOCK_PAGES = 16, 32
BEGIN = 75                                      # percent of lines in use where FEMU collects
SAMPLES = 40                                    # of the counters while a job runs
CEILING = DIES * PAGE / 200e-6 / 1e6            # MB/s: all dies programming
FIO = {"randread": "reads only", "randrw": "reads and writes", "randwrite": "writes only"}
SYSBENCH = {"sysbench-4": 4, "sysbench-32": 32}
LABELS = {**FIO, "sysbench-4": "sysbench, 4 threads", "sysbench-32": "sysbench, 32 threads"}
MODES = {"femu": "as FEMU charges", "real": "as it should be"}
REAL = ("randrw", "randwrite")
_SAMPLER = f"look() {{ {counters.flash_log('$1')}; }}\n" + """\
looking() { while [ ! -e stop ]; do look looks; sleep %.4f; done; look looks; }
start() { look mark; looking & }
finish() { touch stop; wait; }
"""


def _script(name: str, quick: bool) -> str:
    seconds = SECONDS / 4 if quick else SECONDS
    lines = ["set -e", _SAMPLER % (seconds / SAMPLES),
             "mke2fs -t ext4 -F -q -m 0 -J size=4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/nvme0n1",
             "mount -o lazytime /dev/nvme0n1 /mnt"]
    if name in FIO:
        files = {"directory": "/mnt", "size": FILE, "numjobs": FILES, "ioengine": "psync", "fallocate": "none"}
        lines += [fio.command("fill.json", rw="write", bs="128k", **files), "sync", "start",
                  fio.command("fio.json", rw=name, bs="16k", norandommap=True, time_based=True,
                              runtime=f"{round(seconds * 1000)}ms", **files), "finish"]
    else:
        test = (f"sysbench fileio --file-total-size={FILES * FILE} --file-test-mode=rndrw "
                f"--file-extra-flags=direct --file-fsync-all=on --rand-seed={fio.seed(42)} "
                f"--threads={SYSBENCH[name]} --time={math.ceil(seconds)}")
        lines += [f"(cd /mnt && {test} prepare) >/dev/null", "sync", "start", f"(cd /mnt && {test} run) >/dev/null",
                  "finish"]
    return "\n".join([*lines, "umount /mnt"])


def runs(quick: bool) -> list[Run]:
    box = {"zoned": "off", "flash.personality": "blackbox", "flash.size": f"{DEVICE}", "flash.spare": "33",
           "flash.block_pages": f"{BLOCK_PAGES}", "flash.erase_ns": f"{2_000_000 * BLOCK_PAGES // 256}",
           "flash.gc_begin": f"{BEGIN}", "flash.gc_urgent": "95", "flash.gc_gain": "8", "flash.hot_cold": "off"}
    modes = {"femu": {"flash.gc_at_once": "on", "flash.buffer": "0"}, "real": {"flash.buffer": f"{MIB}"}}
    return [Run(f"{name}-{mode}", _script(name, quick),
                Options(clock="virtual", cpus=4, profile="femu", module=False, timeout=3600, device=box | modes[mode]),
                ("looks", "mark", "*.json") if name in FIO else ("looks", "mark"), seconds=40)
            for mode in MODES for name in (REAL if mode == "real" else ("randwrite",) if quick else LABELS)]


def _looks(data: bytes) -> list[dict[str, float]]:
    return [counters.flash(data[at:at + counters.COUNTERS]) for at in range(0, len(data), counters.COUNTERS)]


def _series(outputs: Mapping[str, bytes]) -> list[Sample]:
    """Rates between two looks, from the job's start on; a program is a page, and a line is a block of each die."""
    looks = [*_looks(outputs["mark"]), *_looks(outputs["looks"])]
    found = []
    for before, after in zip(looks, looks[1:], strict=False):
        seconds = (after["now"] - before["now"]) / 1e9
        grown = counters.grown(before, after)
        if not grown["read_bytes"] + grown["written_bytes"]:
            continue                            # the job is not yet there, or not any more
        found.append({"at": round((after["now"] - looks[0]["now"]) / 1e9, 6), "seconds": round(seconds, 6),
                      "iops": round((grown["reads"] + grown["writes"]) / seconds, 3),
                      "mb_s": round((grown["read_bytes"] + grown["written_bytes"]) / seconds / 1e6, 3),
                      "read_mb_s": round(grown["read_bytes"] / seconds / 1e6, 3),
                      "write_mb_s": round(grown["written_bytes"] / seconds / 1e6, 3),
                      "erased_blocks": grown["erases"], "written_pages": grown["written_bytes"] // PAGE,
                      "moved_pages": max(0, grown["programmed_bytes"] - grown["written_bytes"]) // PAGE,
                      "programmed_share": round(after["programmed_bytes"] / DEVICE, 5),
                      "erased_in_all": after["erases"]})
    return found[:-1]                           # the job ended before the last look


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for run, outputs in sorted(files.items()):
        name, mode = run.rsplit("-", 1)
        points = _series(outputs)
        found += [{"workload": name, "mode": mode, "step": step, **point} for step, point in enumerate(points)]
        late = [s for s in points if s["at"] >= points[-1]["at"] / 2]
        of: Sample = {"workload": name, "mode": mode, "part": "all",
                      **{key: round(_mean(points, key), 3) for key in ("iops", "mb_s", "read_mb_s", "write_mb_s")},
                      "peak_mb_s": max(s["mb_s"] for s in points), "plateau_mb_s": round(_mean(late, "mb_s"), 3),
                      **{key: sum(s[key] for s in points) for key in ("erased_blocks", "moved_pages")}}
        written = sum(s["written_pages"] for s in late)
        if written:
            of["write_amplification"] = round(1 + sum(s["moved_pages"] for s in late) / written, 4)
        cliff = next((s["programmed_share"] for s in points if s["erased_in_all"]), None)
        if cliff is not None:
            of["first_erased_at"] = cliff
        if name in REAL:
            of |= {key: value for key, value in fio.sample(outputs["fio.json"], "write").items() if key.endswith("_us")}
        found.append(of)
    return found


def _mean(points: list[Sample], key: str) -> float:
    return float(sum(s[key] * s["seconds"] for s in points) / sum(s["seconds"] for s in points))


def _of(found: list[Sample], name: str, mode: str = "femu") -> Sample:
    return next(s for s in found if (s["workload"], s["mode"], s.get("part")) == (name, mode, "all"))


def _points(found: list[Sample], name: str, mode: str = "femu") -> list[Sample]:
    return [s for s in found if (s["workload"], s["mode"]) == (name, mode) and "at" in s]


def checks(found: list[Sample], quick: bool) -> list[Check]:
    writes, mode = _of(found, "randwrite"), _of(found, "randwrite", "real")
    half_a_look = SECONDS / SAMPLES * writes["peak_mb_s"] * 1e6 / DEVICE / 2
    result = [
        within("writes only: programmed when the first block is erased, over the drive's size",
               writes["first_erased_at"], BEGIN / 100 + half_a_look, 0.05,
               form("the cliff is where three quarters of the lines are in use; seen half a look later")),
        at_most("writes only: best rate over the media's ceiling", writes["peak_mb_s"] / CEILING, 1.02,
                form("16 dies x 4 KiB / 200 us = 327.7 MB/s")),
        at_least("writes only: p99.9 as FEMU charges over as it should be", writes["p99.9_us"] / mode["p99.9_us"], 2,
                 ours("a victim's moves are charged at once: the write that comes next waits for all of them"),
                 f"{writes['p99.9_us'] / 1000:.2f} ms as FEMU charges, {mode['p99.9_us'] / 1000:.2f} ms as it should "
                 f"be: there the buffer fills behind a victim's programs. p50 is {writes['p50_us'] / 1000:.2f} and "
                 f"{mode['p50_us'] / 1000:.2f} ms."),
        within("writes only: plateau as FEMU charges over as it should be",
               writes["plateau_mb_s"] / mode["plateau_mb_s"], 1, 0.15,
               ours("dies work as long for a move, one way or the other"),
               f"There are more moves: {writes['write_amplification']:.2f} blocks are written for one as FEMU "
               f"charges, {mode['write_amplification']:.2f} as it should be. That alone makes the ratio "
               f"{mode['write_amplification'] / writes['write_amplification']:.2f}."),
    ]
    if quick:
        return result
    reads = _points(found, "randread")[1:-1]
    result += [
        at_least("reads only: least over mean rate", min(s["mb_s"] for s in reads) / _mean(reads, "mb_s"), 0.95,
                 says(REPORT, "write cliffs are not observed in IOPS and throughput, and both graphs show consistent "
                      "performance levels without degradation")),
        at_most("reads only: blocks erased and pages moved",
                sum(_of(found, "randread")[key] for key in ("erased_blocks", "moved_pages")), 0,
                says(REPORT, "Both graphs above show zero values throughout the test duration")),
        *(at_most(f"{LABELS[name]}: plateau over the peak", _of(found, name)["plateau_mb_s"] /
                  _of(found, name)["peak_mb_s"], 0.8, says(REPORT, words))
          for name, words in (("randrw", "both IOPS and throughput reach a peak, followed by a sharp decline, and then "
                               "stabilize at a plateau"),
                              ("randwrite", "Both graphs above exhibit write cliffs caused by GC"))),
        at_most(f"{LABELS['sysbench-4']}: plateau over the peak", _of(found, "sysbench-4")["plateau_mb_s"] /
                _of(found, "sysbench-4")["peak_mb_s"], 0.8,
                says(REPORT, "IOPS and throughput also show a sharp drop due to GC, followed by stabilization at a "
                     "certain level"), late=KNOWN),
        *_as_collection_begins(found, "randrw", "both metrics show a sharp increase shortly after the benchmark "
                               "begins, followed by a stable plateau"),
        *_as_collection_begins(found, "sysbench-4", "both metrics rise sharply as GC is performed and then stabilize "
                               "at a certain level"),
        at_most("writes only over reads and writes: requests a second on average",
                writes["iops"] / _of(found, "randrw")["iops"], 1,
                says(REPORT, "IOPS and throughput at write 100% show lower values compared to those at 50% read/50% "
                     "write")),
        *(at_least(f"writes only over reads and writes: {label}", writes[key] / _of(found, "randrw")[key], 1,
                   says(REPORT, "both metrics at write 100% as higher than those at 50% read/50% write"))
          for key, label in (("erased_blocks", "blocks erased"), ("moved_pages", "pages moved"))),
        Check("sysbench: 32 threads over 4, requests a second",
              _of(found, "sysbench-32")["iops"] / _of(found, "sysbench-4")["iops"], 1, 8,
              says(REPORT, "despite an 8-fold increase in threads from 4 to 32, the metrics did not increase "
                   "proportionally")),
        at_least("sysbench: 32 threads over 4, requests a second, at least", _of(found, "sysbench-32")["iops"] /
                 _of(found, "sysbench-4")["iops"], 1.25,
                 says(REPORT, "significantly higher IOPS and throughput compared to those of 4 threads"), late=KNOWN),
        *(at_least(f"sysbench: 32 threads over 4, {label}", _of(found, "sysbench-32")[key] /
                   max(1, _of(found, "sysbench-4")[key]), 1,
                   says(REPORT, "a higher volume of writes and, as a result, higher metrics than the 4-thread "
                        "configuration"), late=late)
          for key, label, late in (("moved_pages", "pages moved", ""), ("erased_blocks", "blocks erased", KNOWN))),
    ]
    return result


def _as_collection_begins(found: list[Sample], name: str, words: str) -> list[Check]:
    """How soon the two measures of collection are where they stay, and how well they stay there."""
    points = _points(found, name)
    result = []
    for key, label in (("erased_blocks", "blocks erased"), ("moved_pages", "pages moved")):
        rates = [s[key] / s["seconds"] for s in points]
        late = [rate for rate, s in zip(rates, points, strict=True) if s["at"] >= points[-1]["at"] / 2]
        plateau = sum(late) / len(late)
        risen = next((s["at"] for s, rate in zip(points, rates, strict=True) if rate >= 0.8 * plateau > 0), math.inf)
        variation = statistics.pstdev(late) / plateau if plateau else math.inf
        result += [
            at_most(f"{LABELS[name]}: {label}, share of the run until four fifths of the plateau", risen /
                    points[-1]["at"], 0.2, says(REPORT, words), late=KNOWN),
            at_most(f"{LABELS[name]}: {label}, coefficient of variation in the second half", variation, 0.2,
                    says(REPORT, words), late=KNOWN),
        ]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["workload", "GC", "IOPS", "read MB/s", "write MB/s", "peak", "plateau", "blocks erased", "pages moved",
             "write amplification", "p99.9 of writes, ms"]]
    for s in (s for s in found if s.get("part") == "all"):
        rows.append([LABELS[s["workload"]], MODES[s["mode"]],
                     *(shown(s, key) for key in ("iops", "read_mb_s", "write_mb_s", "peak_mb_s", "plateau_mb_s")),
                     *(shown(s, key, ".0f") for key in ("erased_blocks", "moved_pages")),
                     shown(s, "write_amplification", ".2f") if "write_amplification" in s else "-",
                     shown(s, "p99.9_us", ".2f", 1000) if "p99.9_us" in s else "-"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(4, height=3.2, columns=2)
    lines = [(name, mode) for mode in MODES for name in LABELS if _points(found, name, mode)]
    for panel, (key, scale, label) in zip(panels, (
            ("iops", 1000, "requests (1000/s)"), ("mb_s", 1, "reads and writes (MB/s)"),
            ("erased_blocks", 0, "blocks erased in 10 s"), ("moved_pages", 0, "pages moved in 10 s")), strict=True):
        figures.lines(panel, [
            figures.Line(LABELS[name] + ("" if mode == "femu" else ", as it should be"),
                         [s["at"] * SCALE for s in _points(found, name, mode)],
                         [s[key] / (scale or s["seconds"] / 10) for s in _points(found, name, mode)],
                         marker=False, dashed=mode == "real") for name, mode in lines],
                      x=f"time x {SCALE} (s)", y=label, title=label.split(" (")[0].split(" in ")[0],
                      legend=panel in panels[2:])
    figures.save(figure, path)


ABOUT = About(
    title="FEMU's black box",
    question="Five workloads on a drive with its FTL inside: where is the cliff, how deep is it, and what does the way "
             "in which FEMU charges collection change?",
    by=("workload", "mode", "part", "step"),
    caption="The report's drive (2 channels x 8 dies, 40/200/2000 us, 3 of 4 GiB visible, GC from 75% of the lines "
            f"on), with jobs on ext4. Capacity, files and time are 1/{SCALE} of the report's, and the first fifth of "
            "its 300 s is shown; the time axis is scaled back. 16 KiB requests, four jobs; sysbench fileio rndrw "
            "with an fsync after each write. Dashed: moves wait for each other, and a buffer of 1 MiB takes the "
            "writes.")
