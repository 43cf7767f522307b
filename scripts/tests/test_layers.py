# SPDX-License-Identifier: GPL-2.0
"""The arrows between folders and files: what `make lint` must see."""

import re
from pathlib import Path

import pytest
from mtlab.build import target
from mtlab.cmd import layers
from mtlab.util.base import ROOT

FOLDERS = ["top", "middle", "low"]


def _tree(root: Path, **files: str) -> layers.Arrows:
    """Sources by folder_name: top_a is top/a.c, top_a_h its header."""
    for name, text in files.items():
        folder, _, file = name.partition("_")
        path = root / folder / (f"{file[:-2]}.h" if file.endswith("_h") else f"{file}.c")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return layers._c_arrows(root, root.rglob("*.[ch]"))


def test_a_tree_without_fault_is_passed(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a='#include "middle/b.h"\nint top(void)\n{\n\treturn middle();\n}\n',
                   middle_b_h="int middle(void);\n",
                   middle_b='#include "middle/b.h"\n#include "low/c.h"\nint middle(void)\n{\n\treturn 0;\n}\n',
                   low_c_h="int low(void);\n")
    assert not list(layers.upward(arrows, FOLDERS))
    assert not layers.circle(arrows)
    assert layers.pairs(arrows) == {"top": {"middle"}, "middle": {"low"}, "low": set()}


def test_an_include_upward_is_named(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, middle_b_h="", low_c='#include "middle/b.h"\n')
    assert list(layers.upward(arrows, FOLDERS)) == ["low/c.c includes middle/b.h, which lies above it in middle/"]


def test_a_call_upward_is_named_without_an_include(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a="void top_event(int what,\n\t       int more)\n{\n}\n",
                   low_c="void top_event(int what, int more);\nvoid low(void)\n{\n\ttop_event(1, 2);\n}\n")
    assert list(layers.upward(arrows, FOLDERS)) == ["low/c.c calls top_event(), which lies above it in top/"]


def test_an_include_by_the_folder_above_is_an_arrow(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a_h="", low_c='#include "../top/a.h"\n')
    assert list(layers.upward(arrows, FOLDERS)) == ["low/c.c includes ../top/a.h, which lies above it in top/"]


def test_a_file_without_a_folder_is_named(tmp_path: Path) -> None:
    assert "attic/a.c lies in none" in "".join(layers.upward(_tree(tmp_path, attic_a=""), FOLDERS))


def test_names_in_comments_are_no_arrows(tmp_path: Path) -> None:
    arrows = _tree(tmp_path, top_a="void top(void)\n{\n}\n",
                   low_c='/* top() calls us:\n#include "top/a.c"\n */\nvoid low(void)\n{\n}\n')
    assert not arrows["low/c.c"]


def test_a_circle_of_sources_is_found(tmp_path: Path) -> None:
    """One includes the other's header, and is called by it."""
    arrows = _tree(tmp_path, low_a='#include "low/b.h"\nvoid a(void)\n{\n}\n', low_b_h="",
                   low_b="void a(void);\nvoid b(void)\n{\n\ta();\n}\n")
    assert set(layers.circle(arrows)) == {"low/a", "low/b"}


FTL_H = "struct mtftl {\n\tstruct mtftl_zones *zones;\n\tstruct mtftl_map *map;\n};\n"
ZONE_H = ("struct mtftl_zones {\n\tint lock, nr;\n};\n"
          "static inline int nr(struct mtftl *ftl)\n{\n\treturn ftl->zones->nr;\n}\n")


def test_uses_of_anothers_fields_are_counted() -> None:
    """Through struct mtftl or a pointer, in any file but the component's own."""
    texts = {"low/ftl.h": FTL_H, "middle/zone.h": ZONE_H,
             "middle/zone.c": "int a(struct mtftl *ftl)\n{\n\treturn ftl->zones->lock;\n}\n",
             "top/gc.c": "int b(struct gc *gc)\n{\n\treturn gc->ftl->zones->lock;\n}\n",
             "top/reset.c": "int c(struct mtftl *ftl)\n{\n\tstruct mtftl_zones *zones = ftl->zones;\n\n"
                            "\treturn zones->lock + zones->nr;\n}\n"}
    assert layers.reach_ins(texts) == {"zones": {"top/gc.c": 1, "top/reset.c": 2}, "map": {}}


@pytest.mark.parametrize("use", [
    "return ftl->zones->lock;",
    "return (ftl)->zones->nr;",
    "return gc->ftl.zones->nr;",
    "return other->zones->lock;",
    "return ftl->zones\n\t\t->lock;",
    "return (*ftl->zones).lock;",
    "struct mtftl_zones *const z = ftl->zones;\n\treturn z->lock;",
    "const struct mtftl_zones *y = NULL, *z = ftl->zones;\n\treturn (*z).nr;",
    "__auto_type z = ftl->zones;\n\treturn z->nr;",
    "typeof(ftl->zones) z = ftl->zones;\n\treturn z->nr;",
    "struct mtftl_zones z = *ftl->zones;\n\treturn z.nr;",
    "return gc->below->lock;",
    "return zones_of(gc->ftl)->lock;",
    "return ((struct mtftl_zones *)data)->lock;",
    "return container_of(data, struct mtftl_zones, lock) == data;",
])
def test_a_use_is_seen_however_it_comes_to_the_struct(use: str) -> None:
    texts = {"low/ftl.h": FTL_H, "middle/zone.h": ZONE_H + "struct mtftl_zones *zones_of(struct mtftl *ftl);\n",
             "top/gc.h": "struct gc {\n\tstruct mtftl_zones *below;\n};\n",
             "top/gc.c": f"int use(struct gc *gc, struct mtftl *ftl, void *data)\n{{\n\t{use}\n}}\n"}
    assert layers.reach_ins(texts)["zones"] == {"top/gc.c": 1}


@pytest.mark.parametrize("no_use", [
    "return ftl->map == NULL;",
    "return nr(ftl);",
    "return config->zones->nr;",
    "struct mtftl_zones *z = ftl->zones;\n\tcall(z);",
], ids=["a pointer", "an accessor", "a field of that name elsewhere", "a pointer that is passed on"])
def test_what_is_no_use_is_passed(no_use: str) -> None:
    texts = {"low/ftl.h": FTL_H, "middle/zone.h": ZONE_H,
             "low/config.h": "struct config {\n\tstruct table *zones;\n};\n",
             "top/gc.c": f"int no_use(struct mtftl *ftl, struct config *config)\n{{\n\t{no_use}\n}}\n"}
    assert layers.reach_ins(texts) == {"zones": {}, "map": {}}


def _function(lines: int) -> str:
    body = "\tif (a) {\n\t}\n" * (lines // 2 - 1)
    return f"/* what(it)\n * does */\nstatic int\twork(int a,\n\t\tint b)\n{{\n{body}}}\n"


def test_a_function_with_too_many_lines_is_named() -> None:
    """Its comment, and the line of its name, do not count; its braces do."""
    assert not list(layers.long_functions(_function(layers.MOST_FUNCTION) * 2))
    assert list(layers.long_functions(_function(layers.MOST_FUNCTION) + _function(layers.MOST_FUNCTION + 2))) == [
        ("work", layers.MOST_FUNCTION + 2)]


def _planted(monkeypatch, tmp_path: Path, file: str, text: str) -> str:
    """What lint says of the target with something more at the end of a file."""
    source = tmp_path / "target"
    for path in [*target.module_sources(), target.SOURCE / "Makefile"]:
        copy = source / path.relative_to(target.SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    with open(source / file, "a") as f:
        f.write(text)
    monkeypatch.setattr(target, "SOURCE", source)
    return "\n".join(layers._target_complaints())


@pytest.mark.parametrize("file, text, said", [
    ("zone/zones.c", "void planted(struct mtftl *ftl)\n{\n\tmtftl_lanes_kick(ftl);\n}\n",
     "zone/zones.c calls mtftl_lanes_kick(), which lies above it in io/"),
    ("map/ring.h", '#include "zone/stream.h"\n', "map/ring.h includes zone/stream.h, which lies above it in zone/"),
    ("zone/scan.c", "void planted(struct mtftl_zone *zone)\n{\n\tmtftl_zone_walk(zone, 0, 0, 0, 0, 0);\n}\n",
     "a circle: zone/"),
    ("gc/gc.c", "int planted(struct mtftl *ftl)\n{\n\treturn ftl->zones->worn_out;\n}\n",
     "1 uses of fields of ftl->zones outside of its files"),
    ("gc/gc.c", "int planted(struct mtftl *ftl)\n{\n\tconst struct mtftl_map *all = ftl->map;\n\n"
                "\treturn all->clock;\n}\n",
     "1 uses of fields of ftl->map outside of its files"),
    ("dm/mount.c", "bool planted(struct mtftl_target *target)\n{\n\treturn target->ftl.super->clean;\n}\n",
     "1 uses of fields of ftl->super outside of its files"),
    ("map/map.c", "void planted(void)\n{\n" + "\n" * layers.MOST_FUNCTION + "}\n",
     f"target/map/map.c: planted() has {layers.MOST_FUNCTION + 2} lines"),
    ("io/lane.c", "int planted(struct mtftl *ftl)\n{\n\treturn mtftl_seed(0, 0);\n}\n",
     f"{layers.MOST_PAIRS + 1} pairs of folders"),
], ids=["a call upward", "an include upward", "a circle", "a reach-in", "a reach-in by another name",
        "a reach-in through the target", "a long function", "one pair of folders more"])
def test_what_is_planted_in_the_target_is_named(monkeypatch, tmp_path: Path, file: str, text: str, said: str) -> None:
    assert said in _planted(monkeypatch, tmp_path, file, text)


def test_checked_statements_are_counted() -> None:
    """Calls of assertions, and functions, but neither declarations nor the macros themselves."""
    assert layers.checked([
        "#define mtftl_assert(condition) \\\n\tassert(condition)\nint declared(int x);\n"
        "static int a(int x,\n\t     int y)\n{\n\tmtftl_assert(x);\n\treturn y;\n}\n",
        "void b(void)\n{\n\tlockdep_assert_held(&lock);\n\tstatic_assert(1);\n}\n"]) == (2, 3)


def test_an_unchecked_target_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layers.LEAST_CHECKED, "target", 99)
    assert "checked statements in" in layers.complaints()


def test_the_folders_are_those_that_hold_the_module() -> None:
    assert {path.parent.name for path in target.module_sources()} == set(target.folders())


def test_the_code_map_names_files_that_exist() -> None:
    """And says for twenty changes at least where to begin."""
    text = (ROOT / "docs/codemap.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "open first" not in line]
    assert len(rows) >= 20
    assert all(re.search(r"^\| .*? \| `[\w./-]+` \| ", row) for row in rows)
    assert [name for name in re.findall(r"`([\w.-]+/[\w./-]+)`", text) if not (ROOT / name).exists()] == []
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "docs/codemap.md" in (ROOT / page).read_text()


def test_our_own_layers_stand() -> None:
    assert not layers.complaints()
