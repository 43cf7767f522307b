# SPDX-License-Identifier: GPL-2.0
"""The figures that the results make: no text lies on another one, and all can be read at a page's width."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from mtlab.cmd import simulate
from mtlab.exp import experiments, figures
from mtlab.util.base import ROOT

LEAST_POINTS = 7
TOUCH = 1.5             # pixels by which lines of text may overlap
APART = 2               # pixels that are between words


def _experiment(name: str) -> Callable[[Path], None]:
    samples = json.loads((ROOT / "results" / name / "results.json").read_text())["samples"]
    return lambda path: experiments.load(name).draw(samples, path)


def _policies(path: Path) -> None:
    simulate.draw(json.loads((ROOT / "results/policies/policies.json").read_text()), path)


DRAWN = {**{name: _experiment(name) for name in experiments.names()
            if (ROOT / "results" / name / "results.json").exists()}, "policies": _policies}


def _rendered(monkeypatch: pytest.MonkeyPatch, draw: Callable[[Path], None]) -> Figure:
    """What a figure is when it is saved, laid out."""
    kept: list[Figure] = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure))
    draw(Path("unused"))
    kept[0].draw_without_rendering()
    return kept[0]


def _texts(figure: Figure) -> list[Text]:
    """All that can be seen: labels of ticks beyond an axis are not."""
    axes = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = [tick for axis in axes for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())]
    seen = [tick for axis in axes for tick in axis._update_ticks()]
    hidden = [label for tick in ticks if tick not in seen for label in (tick.label1, tick.label2)]
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()
            and text.get_text().strip() and text not in hidden and all(axes.axison for axes in [text.axes] if axes)]


def _overlaps(figure: Figure) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in _texts(figure)]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2)
            if min(one.x1, other.x1) - max(one.x0, other.x0) > -APART
            and min(one.y1, other.y1) - max(one.y0, other.y0) > TOUCH]


def _smallest(figure: Figure) -> float:
    """Points of the smallest text when the figure is no wider than a page."""
    shown = min(1, figures.PAGE / figure.get_tightbbox().width)
    return min(text.get_fontsize() for text in _texts(figure)) * shown


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_can_be_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    figure = _rendered(monkeypatch, DRAWN[name])
    assert _overlaps(figure) == []
    assert _smallest(figure) >= LEAST_POINTS
    panels = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
    assert len(panels) == 1 or all(axes.get_title() for axes in panels)
    figures.plt.close(figure)


def test_what_cannot_be_read_is_seen() -> None:
    figure, axes = figures.panels(1)
    figures.bars(axes[0], ["a long name of a group"] * 6, [figures.Bars("a", [1] * 6)], y="y")
    figure.draw_without_rendering()
    assert _overlaps(figure)
    wide, _ = figures.panels(5, columns=5)
    wide.draw_without_rendering()
    assert _smallest(wide) < LEAST_POINTS
