# SPDX-License-Identifier: GPL-2.0
"""The arrows between folders and files: what `make lint` must see."""

from pathlib import Path

from mtlab.build import target
from mtlab.cmd import house

FOLDERS = ["top", "middle", "low"]


def _tree(root: Path, **files: str) -> house.Arrows:
    """Sources by folder_name: top_a is top/a.c, top_a_h its header."""
    for name, text in files.items():
        folder, _, file = name.partition("_")
        path = root / folder / (f"{file[:-2]}.h" if file.endswith("_h") else f"{file}.c")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return house._c_arrows(root, root.rglob("*.[ch]"))


def test_a_tree_without_fault_is_passed(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a='#include "middle/b.h"\nint top(void)\n{\n\treturn middle();\n}\n',
                   middle_b_h="int middle(void);\n",
                   middle_b='#include "middle/b.h"\n#include "low/c.h"\nint middle(void)\n{\n\treturn 0;\n}\n',
                   low_c_h="int low(void);\n")
    assert not list(house.upward(arrows, FOLDERS))
    assert not house.circle(arrows)
    assert house.pairs(arrows) == {"top": {"middle"}, "middle": {"low"}, "low": set()}


def test_an_include_upward_is_named(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, middle_b_h="", low_c='#include "middle/b.h"\n')
    assert list(house.upward(arrows, FOLDERS)) == ["low/c.c includes middle/b.h, which lies above it in middle/"]


def test_a_call_upward_is_named_without_an_include(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a="void top_event(int what,\n\t       int more)\n{\n}\n",
                   low_c="void top_event(int what, int more);\nvoid low(void)\n{\n\ttop_event(1, 2);\n}\n")
    assert list(house.upward(arrows, FOLDERS)) == ["low/c.c calls top_event(), which lies above it in top/"]


def test_a_file_without_a_folder_is_named(tmp_path: Path) -> None:
    assert "attic/a.c lies in none" in "".join(house.upward(_tree(tmp_path, attic_a=""), FOLDERS))


def test_names_in_comments_are_no_arrows(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a="void top(void)\n{\n}\n",
                   low_c='/* top() calls us:\n#include "top/a.c"\n */\nvoid low(void)\n{\n}\n')
    assert not arrows["low/c.c"]


def test_a_circle_of_sources_is_found(tmp_path: Path) -> None:
    """One includes the other's header, and is called by it."""
    arrows = _tree(tmp_path, low_a='#include "low/b.h"\nvoid a(void)\n{\n}\n', low_b_h="",
                   low_b="void a(void);\nvoid b(void)\n{\n\ta();\n}\n")
    assert set(house.circle(arrows)) == {"low/a", "low/b"}


def test_the_folders_are_those_that_hold_the_module() -> None:
    assert {path.parent.name for path in target.module_sources()} == set(target.folders())


def test_our_own_layers_stand() -> None:
    assert not house.complaints()
