# SPDX-License-Identifier: GPL-2.0
"""The houses: which file may know of which. `lab lint` holds the sources against it; `lab house` draws it.

Of the target the layers are listed, from the top down: a file calls and includes what lies below it,
never what lies beside or above. Of the emulator and the lab it is enough that there is no circle.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .base import ROOT

# A name stands for NAME.c and NAME.h, unless one of them is listed by itself.
TARGET = (
    "main",
    "machine",
    "mount",
    "table stats trace.c",
    "target.h",
    "gc",
    "move",
    "pace reset recover",
    "checkpoint",
    "flush",
    "lane read trim",
    "log unit_io",
    "stream",
    "footer walk",
    "reader found",
    "zone",
    "map.c",
    "age.h",
    "map.h",
    "pick",
    "pool pending",
    "space",
    "seq",
    "pause",
    "device",
    "ftl.h",
    "meta.h",
    "config.h event.h compat.h probe.c inflight.h thread trace.h",
    "budget place victim rate follow",
    "policy.h",
    "unit",
    "format.h",
    "pure.h",
)
DRAWN = "docs/target.md"
MOST_LINES = 120            # of a header; what describes the format, tracepoints or kernels is as long as they are
LONG = {"compat.h", "format.h", "trace.h", "unit.h"}

Arrows = dict[str, dict[str, str]]      # from file to file, with what makes it


def _c_arrows(folder: Path) -> Arrows:
    """What C files of a folder include and call of each other."""
    texts = {path.name: re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
             for path in sorted(folder.glob("*.[ch]"))}
    defined = {name: file for file, text in texts.items() if file.endswith(".c")
               for name in re.findall(r"^(?!static|\s)[^\n;={}#]*?\b(\w+)\([^;{}]*\)\n\{", text, re.M)}
    arrows: Arrows = {}
    for file, text in texts.items():
        to = arrows.setdefault(file, {})
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            name = Path(name).name
            if name in texts and name.split(".")[0] != file.split(".")[0]:
                to.setdefault(name, f"includes {name}")
        for name in re.findall(r"\b(\w+)\(", text) if file.endswith(".c") else ():
            if defined.get(name, file) != file:
                to.setdefault(defined[name], f"calls {name}()")
    return arrows


def _python_arrows(folder: Path) -> Arrows:
    """Which modules of a package import which."""
    arrows: Arrows = {}
    for path in sorted(folder.glob("*.py")):
        to = arrows.setdefault(path.name, {})
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                for name in [node.module] if node.module else [alias.name for alias in node.names]:
                    if (folder / f"{name}.py").exists():
                        to.setdefault(f"{name}.py", f"imports {name}")
    return arrows


def _layers(layers: tuple[str, ...]) -> dict[str, int]:
    """The height of each file that the list names."""
    height: dict[str, int] = {}
    for at, names in enumerate(reversed(layers)):
        height.update(dict.fromkeys(names.split(), at))
    return height


def _height(file: str, height: dict[str, int]) -> int | None:
    return height.get(file, height.get(file.split(".")[0]))


def upward(arrows: Arrows, layers: tuple[str, ...]) -> Iterator[str]:
    """Arrows that do not go down, and files that have no place."""
    height = _layers(layers)
    for file, to in arrows.items():
        at = _height(file, height)
        if at is None:
            yield f"{file} has no layer, expected one in scripts/mtlab/house.py"
            continue
        for other, why in to.items():
            below = _height(other, height)
            if below is not None and below >= at:
                yield f"{file} {why}, which lies {'beside' if below == at else 'above'} it"


def circle(arrows: Arrows) -> list[str]:
    """A circle of files that know each other, or nothing. A source and its header are one."""
    graph: dict[str, set[str]] = {}
    for file, to in arrows.items():
        graph.setdefault(file.split(".")[0], set()).update(other.split(".")[0] for other in to)
    done: set[str] = set()

    def search(at: str, path: list[str]) -> list[str]:
        if at in path:
            return [*path[path.index(at):], at]
        if at in done:
            return []
        for other in sorted(graph.get(at, set()) - {at}):
            found = search(other, [*path, at])
            if found:
                return found
        done.add(at)
        return []

    for file in graph:
        found = search(file, [])
        if found:
            return found
    return []


def picture() -> str:
    """The target's rooms, from the top down, each with what its header says it is."""
    lines = []
    for at, names in zip(range(len(TARGET) - 1, -1, -1), TARGET, strict=True):
        for name in names.split():
            path = ROOT / "target" / (name if "." in name else f"{name}.h")
            if name.endswith(".c") or not path.exists():
                path = ROOT / "target" / f"{name.split('.')[0]}.c"
            text = path.read_text()
            comment = re.search(r"/\*\n((?: \*.*\n)+)", text)
            said = " ".join(re.findall(r" \* ?(.*)", comment[1])) if comment else ""
            lines.append(f"{at:>2}  {name:<11} {re.split(r'[.:;] |[.]$', said)[0].strip()}")
    return "\n".join(lines)


def complaints() -> str:
    """All that is wrong with the houses, a line each."""
    said = [f"target: {line}" for line in upward(_c_arrows(ROOT / "target"), TARGET)]
    for name, arrows in (("emulator/hw/nvme", _c_arrows(ROOT / "emulator/hw/nvme")),
                         ("emulator/accel/tcg", _c_arrows(ROOT / "emulator/accel/tcg")),
                         ("scripts/mtlab", _python_arrows(ROOT / "scripts/mtlab")),
                         ("scripts/experiments", _python_arrows(ROOT / "scripts/experiments"))):
        found = circle(arrows)
        if found:
            said.append(f"{name}: a circle: {' -> '.join(found)}")
    for path in sorted((ROOT / "target").glob("*.h")):
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES and path.name not in LONG:
            said.append(f"target/{path.name} has {lines} lines, expected {MOST_LINES} at most")
    members = re.search(r"^struct mtftl \{\n(.*?)^\}", (ROOT / "target/ftl.h").read_text(), re.M | re.S)
    if not members or members[1].count(";") > 15:
        said.append("target/ftl.h: struct mtftl has more than 15 members")
    if picture() not in (ROOT / DRAWN).read_text():
        said.append(f"{DRAWN} does not show the rooms as they are, expected what `scripts/lab house` prints")
    return "\n".join(said)


def _house(_args: argparse.Namespace) -> int:
    print(picture())
    return 0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`house` on the command line of scripts/lab."""
    house = commands.add_parser("house", help="the target's parts, and which may use which")
    house.set_defaults(function=_house)
