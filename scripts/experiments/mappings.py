# SPDX-License-Identifier: GPL-2.0
"""The mappings of the FTL inside a drive beside each other, and greedy collection against its closed form.

No guest: the black box's own FTL and flash model, with a load in the host's place (emulator/simulator/firmware.c). All
of a drive is written in order, then aged by the load, then measured.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, within
from mtlab.run.firmware import greedy
from mtlab.run.options import MODEL, Options

MAPPINGS = ("page", "dftl", "bast", "fast", "last")
SPARES = (7, 15, 25, 50)                        # percent
SECTORS = 256                                   # of an erase block, where the closed form is looked at
LOADS = {"in order": "random=0 large=65536 run=1048576", "uniform 4 KiB": "random=100",
         "90% to a tenth": "random=100 hot=90 hot_area=10"}
# 4 channels x 2 dies, 2 of them a block; 20% spare, some of it log blocks. The drive's buffer holds 32 pages.
DRIVE = ("sector=4096 page=4096 channels=4 dies=2 block_pages=64 blocks=96 read_ns=50000 program_ns=600000 "
         "erase_ns=3000000 channel_rate=200000000 buffer=131072 zone_dies=1 spare_permille=200 gc_begin=95 hot_cold=1 "
         "log_blocks=80 log_ways=8 map_pages=8 depth=16")


def runs(quick: bool) -> list[Run]:
    options = Options(clock=MODEL)
    rounds = 200 if quick else 400
    # no delay, no threshold: nothing but what is written and moved
    waf = "\n".join(f"{spare} sector=512 page=512 small=512 block_pages={SECTORS} blocks={256 if quick else 512} "
                    f"spare_permille={spare * 10} gc_begin=100 gc_urgent=100 hot_cold=1 buffer=32768 large=512 run=512 "
                    f"age={rounds} requests={40000 if quick else 80000}" for spare in SPARES)
    found = [Run("greedy", waf, options, seeds=1 if quick else 3, seconds=2)]
    for mapping in MAPPINGS:
        lines = (f"{name.replace(' ', '-')} {DRIVE} mapping={mapping} {load} "
                 f"{'fill=100 age=30 warm=500 requests=3000' if quick else 'fill=100 age=50 warm=1000 requests=5000'}"
                 for name, load in LOADS.items())
        found.append(Run(mapping, "\n".join(lines), options, seeds=1 if quick else 3, seconds=4))
    return found


def _written(told: Mapping[str, float]) -> float:
    """Blocks written to flash for one of the host's; padding apart."""
    return (told["host"] + told["moved"] + told["filler"] + told["map_writes"]) / told["host"]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for spare in SPARES:
        told = json.loads(files["greedy"][f"{spare}.json"])
        # of the two blocks that are being written half is used
        ratio = (told["in_use"] - 1) * told["block_sectors"] / told["logical"]
        found.append({"spare": spare, "write_amplification": round(_written(told), 4),
                      "predicted": round(greedy(ratio, SECTORS), 4)})
    for mapping in MAPPINGS:
        for load in LOADS:
            told = json.loads(files[mapping][f"{load.replace(' ', '-')}.json"])
            found.append({"mapping": mapping, "load": load, "iops": told["iops"], "mb_s": told["mb_s"],
                          "write_amplification": round(_written(told), 4), "p99_us": told["writes"]["p99_us"],
                          "map_bytes": told["map_bytes"],
                          **{key: told[key] for key in ("merges_switch", "merges_partial", "merges_full")}})
    return found


def _of(found: list[Sample], mapping: str, load: str) -> Sample:
    return next(s for s in found if (s.get("mapping"), s.get("load")) == (mapping, load))


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [within(f"greedy, {s['spare']}% spare: write amplification", s["write_amplification"], s["predicted"],
                     0.04 if quick else 0.02, form("greedy collection under uniform random writes"))
              for s in found if "spare" in s]
    in_order, uniform, hot = LOADS
    result += [
        at_most("in order: most that a mapping writes of a block, but BAST",
                max(_of(found, m, in_order)["write_amplification"] for m in MAPPINGS if m != "bast"), 1.5,
                ours("runs of four erase blocks: blocks go stale as a whole, logs are switched"),
                ", ".join(f"{m} {_of(found, m, in_order)['write_amplification']:.2f}" for m in MAPPINGS) + "."),
        at_least("uniform: FAST over page mapping, write amplification",
                 _of(found, "fast", uniform)["write_amplification"] /
                 _of(found, "page", uniform)["write_amplification"], 5,
                 ours("a log block has blocks of as many pieces as it holds, and each costs a full merge"),
                 f"FAST writes {_of(found, 'fast', uniform)['write_amplification']:.1f} blocks for one, page mapping "
                 f"{_of(found, 'page', uniform)['write_amplification']:.1f}."),
        at_least("uniform: DFTL over page mapping, write amplification",
                 _of(found, "dftl", uniform)["write_amplification"] /
                 _of(found, "page", uniform)["write_amplification"], 1.5,
                 ours("8 of 41 pages of the map are in memory: four of five writes change one that is not")),
        at_most("90% to a tenth: LAST over FAST, write amplification",
                _of(found, "last", hot)["write_amplification"] / _of(found, "fast", hot)["write_amplification"], 0.8,
                ours("hot log blocks go stale before they are merged"),
                f"FAST writes {_of(found, 'fast', hot)['write_amplification']:.2f} blocks for one, LAST "
                f"{_of(found, 'last', hot)['write_amplification']:.2f}."),
        at_most("memory of FAST's map over page mapping's", _of(found, "fast", uniform)["map_bytes"] /
                _of(found, "page", uniform)["map_bytes"], 0.5,
                ours("a map of blocks, and one of the log blocks' pages")),
    ]
    return result


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["mapping", "load", "MB/s", "p99 ms", "write amplification", "predicted", "switch, partial, full merges",
             "map KiB"]]
    for s in found:
        if "spare" in s:
            rows.append([f"page, {s['spare']}% spare", "uniform, no delays", "-", "-",
                         shown(s, "write_amplification", ".3f"), shown(s, "predicted", ".3f"), "-", "-"])
        else:
            rows.append([s["mapping"], s["load"], shown(s, "mb_s", ".2f"), shown(s, "p99_us", ".1f", 1000),
                         shown(s, "write_amplification", ".2f"), "-",
                         ", ".join(f"{s[key]}" for key in ("merges_switch", "merges_partial", "merges_full")),
                         f"{s['map_bytes'] / 1024:.0f}"])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, (closed, rate, written) = figures.panels(3)
    greedily = [s for s in found if "spare" in s]
    figures.lines(closed, [figures.Line("measured", SPARES, [s["write_amplification"] for s in greedily]),
                           figures.Line("closed form", SPARES, [s["predicted"] for s in greedily], dashed=True)],
                  x="spare (%)", y="write amplification", title="greedy collection", columns=2)
    for panel, key, label in ((rate, "mb_s", "writes (MB/s)"), (written, "write_amplification", "write amplification")):
        figures.bars(panel, MAPPINGS, [figures.Bars(load, [_of(found, m, load)[key] for m in MAPPINGS])
                                       for load in LOADS], y=label, title=label.split(" (")[0])
        values = [_of(found, m, load)[key] for m in MAPPINGS for load in LOADS]
        panel.set_yscale("log")
        panel.set_ylim(min(values) / 2, max(values) * 2)
    figures.save(figure, path)


ABOUT = About(
    title="Mappings of an FTL inside a drive",
    question="What does each way to map logical blocks cost, and does greedy collection write what its closed form "
             "says?",
    by=("mapping", "load", "spare"),
    caption="The black box's FTL on its flash model, without a guest. Greedy collection: page mapping without "
            "delays, 512 erase blocks of 256 pages, after uniform writes of four times the drive. Others: 8 dies on "
            "4 channels, 768 erase blocks of 64 pages of 4 KiB, 50/600/3000 us, 20% spare, 80 log blocks, 16 writes "
            "in flight. Before, all was written in order, and half as much again by the load. In order: 64 KiB "
            "requests, runs of 1 MiB.")
