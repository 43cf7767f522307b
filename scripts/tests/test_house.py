# SPDX-License-Identifier: GPL-2.0
"""The houses' arrows: what `make lint` must see."""

from pathlib import Path

from mtlab import house

LAYERS = ("top", "middle", "bottom.h low")


def _folder(tmp_path: Path, **files: str) -> house.Arrows:
    for name, text in files.items():
        (tmp_path / name.replace("_dot_", ".")).write_text(text)
    return house._c_arrows(tmp_path)


def test_a_house_without_fault_is_passed(tmp_path: Path) -> None:
    arrows = _folder(tmp_path, top_dot_c='#include "middle.h"\nint top(void)\n{\n\treturn middle();\n}\n',
                     middle_dot_h="int middle(void);\n",
                     middle_dot_c='#include "middle.h"\n#include "low.h"\nint middle(void)\n{\n\treturn 0;\n}\n',
                     low_dot_h="int low(void);\n")
    assert not list(house.upward(arrows, LAYERS))
    assert not house.circle(arrows)


def test_an_include_upward_is_named(tmp_path: Path) -> None:
    arrows = _folder(tmp_path, middle_dot_h="", low_dot_c='#include "middle.h"\n')
    assert list(house.upward(arrows, LAYERS)) == ["low.c includes middle.h, which lies above it"]


def test_a_call_upward_is_named_without_an_include(tmp_path: Path) -> None:
    arrows = _folder(tmp_path, top_dot_c="void top_event(int what,\n\t       int more)\n{\n}\n",
                     low_dot_c="void top_event(int what, int more);\nvoid low(void)\n{\n\ttop_event(1, 2);\n}\n")
    assert list(house.upward(arrows, LAYERS)) == ["low.c calls top_event(), which lies above it"]


def test_what_lies_beside_is_not_below(tmp_path: Path) -> None:
    arrows = _folder(tmp_path, bottom_dot_h="", low_dot_c='#include "bottom.h"\n')
    assert list(house.upward(arrows, LAYERS)) == ["low.c includes bottom.h, which lies beside it"]


def test_a_file_without_a_place_is_named(tmp_path: Path) -> None:
    assert "attic.c has no layer" in "".join(house.upward(_folder(tmp_path, attic_dot_c=""), LAYERS))


def test_names_in_comments_are_no_arrows(tmp_path: Path) -> None:
    arrows = _folder(tmp_path, top_dot_c="void top(void)\n{\n}\n",
                     low_dot_c='/* top() calls us:\n#include "top.c"\n */\nvoid low(void)\n{\n}\n')
    assert not arrows["low.c"]


def test_a_circle_is_found(tmp_path: Path) -> None:
    for name, imports in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        (tmp_path / f"{name}.py").write_text(f"from .{imports} import x\n")
    assert set(house.circle(house._python_arrows(tmp_path))) == {"a", "b", "c"}


def test_our_own_houses_stand() -> None:
    assert not house.complaints()
