# SPDX-License-Identifier: GPL-2.0
"""One style for all figures: sizes and type that print, colours that the colour-blind tell apart.

The same data give the same bytes: no date, no version, fixed element ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

# Okabe and Ito's palette; the first line of a figure is ours.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "x")

plt.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6,
    "legend.frameon": False, "lines.linewidth": 1.6, "lines.markersize": 5, "figure.dpi": 100,
    "savefig.bbox": "tight", "svg.hashsalt": "dm-mtftl", "svg.fonttype": "path",
})


@dataclass(frozen=True)
class Line:
    """One line of a figure: its points, and what it means."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


def panels(count: int, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels side by side."""
    figure, axes = plt.subplots(1, count, figsize=(4.2 * count, height), squeeze=False)
    return figure, list(axes[0])


def lines(axes: Axes, series: Sequence[Line], *, x: str, y: str, title: str = "", log2_x: bool = False,
          ticks: Sequence[float] = ()) -> None:
    """Draw lines with markers; y starts at zero, so that heights compare."""
    for number, line in enumerate(series):
        axes.plot(line.x, line.y, label=line.label, color=COLOURS[number % len(COLOURS)],
                  marker=None if line.dashed else MARKERS[number % len(MARKERS)],
                  linestyle="--" if line.dashed else "-")
    if log2_x:
        axes.set_xscale("log", base=2)
    if ticks:
        axes.set_xticks(list(ticks), [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.legend()


def save(figure: Figure, path: Path) -> None:
    """Write PATH.svg and PATH.png."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nothing: dict[str, Any] = {"Date": None, "Creator": None}
    figure.savefig(path.with_suffix(".svg"), metadata=nothing)
    figure.savefig(path.with_suffix(".png"), dpi=160, metadata={"Software": None})
    plt.close(figure)
