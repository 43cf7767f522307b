# SPDX-License-Identifier: GPL-2.0
"""Flexible data placement: one handle writes at random, three others do not, and who pays for it.

No guest: the black box's own FTL and flash model, with a load in the host's place (emulator/simulator/firmware.c). The
drive is in four equal parts, each written by a handle of its own. The first part's writes are at random and of one
block. The other three get the remaining writes in equal shares: of eight blocks, in order and round their part, or of
one block at random.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, says, shown, within
from mtlab.exp.sources import KNOWN, WARP
from mtlab.run.firmware import greedy
from mtlab.run.options import MODEL, Options

NOISY = (0, 25, 70, 90)                     # percent of the writes
QUIET = {"in order": 0, "at random": 100}
DRIVES = {"no handles": "", "initially isolated": "handles=4", "persistently isolated": "handles=4 fdp_persistent=4"}
NONE, INITIALLY, PERSISTENTLY = DRIVES
PARTS = 4
# 320 superblocks of 128 blocks on two dies, 15% to spare, without delays.
DRIVE = ("sector=512 page=512 small=512 large=4096 run=4096 block_pages=64 blocks=320 dies=2 spare_permille=150 "
         f"buffer=32768 gc_begin=100 gc_urgent=100 hot_cold=1 parts={PARTS}")


def _name(noisy: int, drive: str) -> str:
    return f"{noisy}-{drive.replace(' ', '-')}"


def runs(quick: bool) -> list[Run]:
    rounds, requests = (100, 20000) if quick else (400, 20000)
    return [Run(quiet.replace(" ", "-"), "\n".join(
                f"{_name(noisy, drive)} {DRIVE} random={share} noisy={noisy} {words} age={rounds} requests={requests}"
                for noisy in NOISY for drive, words in DRIVES.items()),
                Options(clock=MODEL), seconds=10)
            for quiet, share in QUIET.items()]


def _written(handles: list[dict[str, int]]) -> float:
    """Blocks written to flash for one of these handles' own."""
    host = sum(h["host"] for h in handles)
    return round((host + sum(h["moved"] for h in handles)) / host, 4) if host else 0


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for quiet in QUIET:
        for noisy in NOISY:
            for drive in DRIVES:
                told = json.loads(files[quiet.replace(" ", "-")][f"{_name(noisy, drive)}.json"])
                sample: Sample = {"quiet": quiet, "noisy": noisy, "drive": drive,
                                  "write_amplification": _written([told])}
                if drive == NONE:
                    # of the two blocks that are being written half is used
                    ratio = (told["in_use"] - 1) * told["block_sectors"] / told["logical"]
                    sample["predicted"] = round(greedy(ratio, told["block_sectors"]), 4)
                else:
                    handles = told["handles"]
                    sample |= {"of_noisy": _written(handles[:1]), "of_quiet": _written(handles[1:]),
                               "moved_of_quiet": round(sum(h["moved"] for h in handles[1:]) / max(told["moved"], 1), 4)}
                found.append(sample)
    return found


def _of(found: list[Sample], quiet: str, noisy: int, drive: str, field: str = "write_amplification") -> float:
    return float(next(s for s in found if (s["quiet"], s["noisy"], s["drive"]) == (quiet, noisy, drive))[field])


def checks(found: list[Sample], quick: bool) -> list[Check]:
    in_order, at_random = QUIET

    def gain(quiet: str, noisy: int, drive: str, of: str, field: str = "write_amplification") -> float:
        return _of(found, quiet, noisy, drive, field) / _of(found, quiet, noisy, of, field)

    return [
        within("uniform writes without handles: write amplification", _of(found, at_random, 25, NONE),
               _of(found, at_random, 25, NONE, "predicted"), 0.04,
               form("greedy collection under uniform random writes")),
        at_most("three streams in order, a handle each: write amplification", _of(found, in_order, 0, INITIALLY), 1.05,
                says(WARP, "FDP sustains near-1 WAF when RUH isolation aligns with object lifetimes")),
        at_least("quiet handles in order: 90% noise over none, write amplification",
                 _of(found, in_order, 90, INITIALLY, "of_quiet") / _of(found, in_order, 0, INITIALLY, "of_quiet"), 1.1,
                 says(WARP, "invalidations concentrated in one reclaim unit handle inflate write amplification across "
                            "other handles"),
                 late=KNOWN),
        at_least("25% noise: moved blocks that are of the handles in order",
                 _of(found, in_order, 25, INITIALLY, "moved_of_quiet"), 0.4,
                 says(WARP, "even capacity-dominant sequential traffic can end up as the largest contributor to WAF"),
                 late=KNOWN),
        at_most("quiet handles in order, 70% noise: handles over none, write amplification",
                gain(in_order, 70, INITIALLY, NONE), 0.8, ours("what is in order goes stale by whole units"),
                late=KNOWN),
        at_least("all at random, 25% each: handles over none, write amplification",
                 gain(at_random, 25, INITIALLY, NONE), 0.95,
                 ours("no handle's data lives longer than another's, so there is nothing to separate"), late=KNOWN),
        at_most("quiet handles at random, 90% noise: persistently over initially isolated, their write amplification",
                gain(at_random, 90, PERSISTENTLY, INITIALLY, "of_quiet"), 0.6,
                ours("survivors among others' are moved again each time that the noisy handle's go stale"),
                late=KNOWN),
        at_most("90% noise, quiet handles in order: persistently over initially isolated, write amplification",
                gain(in_order, 90, PERSISTENTLY, INITIALLY), 1, ours("the noisy handle's survivors stay among their "
                                                                   "like"), late=KNOWN),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["quiet handles", "noise %", "drive", "write amplification", "of the noisy handle", "of the quiet ones",
             "moved: of the quiet ones"]]
    for s in found:
        rows.append([str(s["quiet"]), f"{s['noisy']}", str(s["drive"]), shown(s, "write_amplification", ".2f"),
                     *(shown(s, key, form) if key in s else "-"
                       for key, form in (("of_noisy", ".2f"), ("of_quiet", ".2f"), ("moved_of_quiet", ".0%")))])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (in_order, at_random, handles) = figures.panels(3)
    for panel, quiet in ((in_order, "in order"), (at_random, "at random")):
        figures.lines(panel, [figures.Line(drive, NOISY, [_of(found, quiet, n, drive) for n in NOISY])
                              for drive in DRIVES], x="noisy writes (%)", y="write amplification",
                      title=f"quiet handles {quiet}")
    figures.lines(handles, [figures.Line(f"{quiet}, {drive.split()[0]}", NOISY,
                                         [_of(found, quiet, n, drive, "of_quiet") for n in NOISY],
                                         dashed=drive == PERSISTENTLY, colour=number)
                            for number, quiet in enumerate(QUIET) for drive in (INITIALLY, PERSISTENTLY)],
                  x="noisy writes (%)", y="write amplification", title="of the quiet handles")
    figures.save(figure, path)


ABOUT = About(
    title="Flexible data placement and a noisy handle",
    question="If one handle writes at random, what do the others pay, and does isolation help them?",
    by=("quiet", "noisy", "drive"),
    caption="The black box's FTL without a guest and without delays: 320 superblocks of 128 blocks, 15% to spare, "
            "four handles with a quarter of the drive each, after four times the drive was written. Noise: the share "
            "of requests that one handle writes at random, a block each. The others write eight blocks in order, or a "
            "block at random.")
