# SPDX-License-Identifier: GPL-2.0
"""One style for all figures: sizes and type that print, colours that the colour-blind tell apart.

The same data give the same bytes: no date, no version, fixed element ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402
from matplotlib.transforms import ScaledTranslation  # noqa: E402

# Okabe and Ito's palette; the first line of a figure is ours.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
PANEL = 4.2         # inches; two panels side by side are as wide as a page
PAGE = 2 * PANEL
GRADES = ("#b7e0c9", "#f4e6a2", "#f5b97f", "#e78a7c")      # of a cell, from good to bad
MARKERS = ("o", "s", "^", "D", "v", "P", "x", "*")

plt.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.6,
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
    marker: bool = True
    spread: Sequence[tuple[float, float]] = ()      # least and most, for each point: bars, or a band without markers
    colour: int = -1                                # of COLOURS; less than 0: the line's number


@dataclass(frozen=True)
class Bars:
    """One bar of each group of a figure."""

    label: str
    y: Sequence[float]
    spread: Sequence[tuple[float, float]] = ()


def panels(count: int, height: float = 2.9, columns: int = 2, width: float = PANEL) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of that size, in rows that fill a page's width."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False,
                                layout="constrained")
    for extra in list(axes.flat)[count:]:
        extra.set_axis_off()
    return figure, list(axes.flat)[:count]


def _from_least_to_most(axes: Axes, places: Sequence[float], values: Sequence[float], *,
                        spread: Sequence[tuple[float, float]], colour: str = "#000000", across: bool = False) -> None:
    """A bar at each value that has a spread."""
    for place, value, (least, most) in zip(places, values, spread, strict=False):
        if least < most:
            error = [[value - least], [most - value]]
            axes.errorbar(*((value, place) if across else (place, value)), **{"xerr" if across else "yerr": error},
                          fmt="none", ecolor=colour, capsize=3, elinewidth=1, capthick=1, zorder=3)


def _legend(axes: Axes, columns: int) -> None:
    """Below the panel and the words of its x axis: it hides nothing."""
    names = [label.get_text() for label in axes.get_xticklabels()]
    points = 9 + 13 * max((1 + name.count("\n") for name in names), default=1) + 15 * bool(axes.get_xlabel())
    assert axes.figure
    below = axes.transAxes + ScaledTranslation(0, -points / 72, axes.figure.dpi_scale_trans)
    axes.legend(ncols=columns, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, borderaxespad=0)


def lines(axes: Axes, series: Sequence[Line], *, x: str, y: str, title: str = "", log2_x: bool = False,
          ticks: Sequence[float] = (), legend: bool = True, columns: int = 1) -> None:
    """Draw lines with markers; y starts at zero, so that heights compare."""
    for number, line in enumerate(series):
        colour = COLOURS[(number if line.colour < 0 else line.colour) % len(COLOURS)]
        if line.spread and line.marker:
            _from_least_to_most(axes, line.x, line.y, spread=line.spread, colour=colour)
        elif line.spread:
            axes.fill_between(line.x, [least for least, _ in line.spread], [most for _, most in line.spread],
                              color=colour, alpha=0.2, linewidth=0)
        axes.plot(line.x, line.y, label=line.label, color=colour,
                  marker=MARKERS[number % len(MARKERS)] if line.marker and not line.dashed else None,
                  linestyle="--" if line.dashed else "-")
    if log2_x:
        axes.set_xscale("log", base=2)
        ticks = ticks or series[0].x
    if ticks:
        axes.set_xticks(list(ticks), [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    if legend:
        _legend(axes, columns)


def bars(axes: Axes, groups: Sequence[str], series: Sequence[Bars], *, y: str, title: str = "", x: str = "",
         limit: float | None = None, limit_label: str = "", columns: int = 2) -> None:
    """Draw groups of bars, one bar of each series in a group; limit is a line that they can reach."""
    width = 0.8 / len(series)
    for number, bar in enumerate(series):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        axes.bar(places, bar.y, width, label=bar.label, color=COLOURS[number % len(COLOURS)])
        _from_least_to_most(axes, places, bar.y, spread=bar.spread)
    if limit is not None:
        axes.axhline(limit, color="#000000", linestyle="--", linewidth=1, label=limit_label)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    _legend(axes, columns)


def rows(axes: Axes, names: Sequence[str], series: Sequence[Bars], *, x: str, title: str = "",
         columns: int = 2) -> None:
    """Draw groups of bars from the left, a group a name, from the top down: for names that are long."""
    height = 0.8 / len(series)
    for number, bar in enumerate(series):
        places = [row + (number - (len(series) - 1) / 2) * height for row in range(len(names))]
        axes.barh(places, bar.y, height, label=bar.label, color=COLOURS[number % len(COLOURS)])
        _from_least_to_most(axes, places, bar.y, spread=bar.spread, across=True)
    _named_rows(axes, names, x, title, columns)


def stacked(axes: Axes, names: Sequence[str], parts: Sequence[Bars], *, x: str, title: str = "",
            columns: int = 2) -> None:
    """Draw a bar a name, from the top down, of parts that follow each other."""
    left = [0.0] * len(names)
    for number, part in enumerate(parts):
        axes.barh(range(len(names)), part.y, 0.7, left=left, label=part.label, color=COLOURS[number % len(COLOURS)])
        left = [a + b for a, b in zip(left, part.y, strict=True)]
    _named_rows(axes, names, x, title, columns)


def _named_rows(axes: Axes, names: Sequence[str], x: str, title: str, columns: int) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel(x)
    axes.set_title(title)
    _legend(axes, columns)


def sideways(axes: Axes, names: Sequence[str], values: Sequence[float], *, x: str, title: str = "",
             spread: Sequence[tuple[float, float]] = ()) -> None:
    """Draw one bar a name, from the top down, on a logarithmic scale, each with its number."""
    colours = [COLOURS[0] if "mtftl" in name else COLOURS[7] for name in names]     # ours stand out
    shown = axes.barh(range(len(names)), values, 0.7, color=colours)
    _from_least_to_most(axes, range(len(names)), values, spread=spread, across=True)
    axes.bar_label(shown, [f"{v:.3g}" for v in values], padding=3)
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 3, 4 * max(values))     # the least has a bar, the most has room for its number
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(x)
    axes.set_title(title)


def heat(axes: Axes, columns: Sequence[float], rows: Sequence[float], values: Sequence[Sequence[float]], *,
         x: str, y: str, value: str, title: str = "") -> None:
    """Draw a surface as cells, each with its number; the first row is at the bottom."""
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="cividis", vmin=0)
    half = max(max(row) for row in values) / 2
    for i, row in enumerate(values):
        for j, cell in enumerate(row):
            axes.text(j, i, f"{cell:.0f}", ha="center", va="center", fontsize=8,
                      color="black" if cell > half else "white")
    axes.set_xticks(range(len(columns)), [f"{c:g}" for c in columns])
    axes.set_yticks(range(len(rows)), [f"{r:g}" for r in rows])
    axes.grid(visible=False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    colours = axes.figure.colorbar(image, ax=axes)
    colours.set_label(value)
    colours.outline.set_visible(False)


def grades(axes: Axes, columns: Sequence[str], rows: Sequence[str],
           cells: Sequence[Sequence[tuple[int, str]]]) -> None:
    """Draw a table in which each cell has a grade, from 0 to 3, and a word; less than 0: nothing. From the top down."""
    for i, row in enumerate(cells):
        for j, (grade, word) in enumerate(row):
            if grade >= 0:
                axes.add_patch(Rectangle((j - 0.48, i - 0.45), 0.96, 0.9, color=GRADES[grade]))
                axes.text(j, i, fill(word, 12), ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(columns)), [fill(c, 12) for c in columns], fontsize=7)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [fill(r, 24) for r in rows], fontsize=7)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)


def timeline(axes: Axes, rows: Mapping[str, Sequence[Sequence[float]]], span: tuple[float, float],
             labels: tuple[str, str], *, x: str, title: str = "") -> None:
    """Draw a row a name, from the top down: one series of equal steps of time above its line, another one below."""
    most = max((value for both in rows.values() for values in both for value in values), default=0) or 1
    for row, both in enumerate(rows.values()):
        axes.axhline(row, color="#999999", linewidth=0.5)
        for number, values in enumerate(both):
            edges = [span[0] + (span[1] - span[0]) * step / len(values) for step in range(len(values) + 1)]
            way = -1 if number == 0 else 1          # the axis is upside down
            axes.stairs([row + way * 0.45 * value / most for value in values], edges, baseline=row, fill=True,
                        color=COLOURS[number], label=labels[number] if row == 0 else None)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(*span)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(x)
    axes.set_title(title)
    _legend(axes, 2)


def save(figure: Figure, path: Path) -> None:
    """Write PATH.svg."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nothing: dict[str, Any] = {"Date": None, "Creator": None}
    figure.savefig(path.with_suffix(".svg"), metadata=nothing)
    plt.close(figure)
