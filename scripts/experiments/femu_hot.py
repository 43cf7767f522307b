# SPDX-License-Identifier: GPL-2.0
"""Hot and cold apart on the loads of FEMU's report, as it proposes.

Two ways: what collection moves has lines of its own; and users' writes have, too, when what they replace was written
not long ago. The drive and the loads are femu's; one load has a hot part, which the report's do not.
"""

from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import femu, figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, says, spread, within
from mtlab.exp.sources import REPORT
from mtlab.run.options import Options

SIZE = femu.Size(scale=32, seconds=120, look=2, block_pages=32, mkfs="-J size=4 ", mount="-o lazytime ")
SEEDS = 3
MOVED, HOT = "moved", "hot"
MODES = {femu.FEMU: "together", MOVED: "what GC moves apart", HOT: "hot writes apart, too"}
DEVICE = {femu.FEMU: femu.AS_FEMU, MOVED: femu.AS_FEMU | {"flash.hot_cold": "on"},
          HOT: femu.AS_FEMU | {"flash.hot_cold": "on", "flash.hot_writes": "on"}}
LOADS = ("randwrite", "sysbench-4", femu.SKEWED)


def runs(quick: bool) -> list[Run]:
    return [Run(f"{load}-{mode}", SIZE.script(load),
                Options(clock="virtual", cpus=4, profile="femu", module=False, timeout=3600,
                        device=SIZE.device(DEVICE[mode])),
                ("looks", "mark", *(() if load in femu.SYSBENCH else ("*.json",))), seconds=15,
                seeds=1 if quick else SEEDS)
            for load in (LOADS[-1:] if quick else LOADS) for mode in MODES]


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found = []
    for run, outputs in sorted(files.items()):
        load, mode = run.rsplit("-", 1)
        found += [s for s in SIZE.samples(load, mode, outputs) if s["part"] == "all"]
    return found


def checks(found: list[Sample], quick: bool) -> list[Check]:
    words = "implementing hot/cold data separation in the future is expected to improve GC performance"
    result = []
    for load, mode in ((load, mode) for load in (LOADS[-1:] if quick else LOADS) for mode in (MOVED, HOT)):
        apart, together = (femu.of(found, load, of)["write_amplification"] for of in (mode, femu.FEMU))
        result.append(at_most(f"{femu.NAMES[load]}, {MODES[mode]}: pages moved for one written, over together",
                              (apart - 1) / (together - 1), 0.95, says(REPORT, words),
                              f"{apart:.2f} pages are programmed for one, {together:.2f} with all together."))
    plateau, before = (femu.of(found, femu.SKEWED, mode)["plateau_mb_s"] for mode in (HOT, femu.FEMU))
    result.append(at_least(f"{femu.NAMES[femu.SKEWED]}, {MODES[HOT]}: plateau over together", plateau / before, 1.1,
                           ours("dies that move less have more time for users' writes")))
    return result if quick else [*result, *_uniform(found)]


def _uniform(found: list[Sample]) -> list[Check]:
    why = form("uniform writes have no hot part: a line more is open for each of the parts, and nothing is gained")
    result = []
    for lines, mode in enumerate(MODES, 1):
        writes = femu.of(found, "randwrite", mode)
        result.append(within(f"writes only, {MODES[mode]}: write amplification over the closed form",
                             writes["write_amplification"] / SIZE.amplified(writes["filled"], lines), 1, 0.05, why,
                             late="" if mode == HOT else "set when the first third of its time was known"))
    return result


def table(found: list[Sample]) -> list[list[str]]:
    return femu.table(found, MODES)


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(2)
    loads = [load for load in LOADS if any(s["workload"] == load for s in found)]
    for panel, key, label in ((panels[0], "write_amplification", "write amplification"),
                              (panels[1], "plateau_mb_s", "plateau (MB/s)")):
        figures.rows(panel, [femu.NAMES[load].replace(", ", ",\n") for load in loads], [
            figures.Bars(MODES[mode], [femu.of(found, load, mode)[key] for load in loads],
                         [spread(femu.of(found, load, mode), key) for load in loads]) for mode in MODES],
                     x=label, title=label.split(" (")[0])
    figures.save(figure, path)


ABOUT = About(
    title="Hot and cold apart in FEMU's black box",
    question="Do hot and cold data apart, which the report on FEMU proposes, improve collection on its loads?",
    by=("workload", "mode", "part"),
    caption=f"The drive and the loads of femu, for {SIZE.seconds:.0f} s of the report's 300 at 1/{SIZE.scale} of its "
            "size; charged as FEMU does. What GC moves, and then hot writes, too, have lines of their own. Medians of "
            f"{SEEDS} seeds, bars from the least to the most.")
