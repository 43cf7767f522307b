# SPDX-License-Identifier: GPL-2.0
"""Which module of the lab imports which: packages only know those below them. `lab lint` checks it.

The packages, from the top down, are those that the first lines of mtlab/__init__.py list. Tests import no tests: what
several of them need lies in a module beside them that is none.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ..util.base import ROOT
from .layers import Arrows, circle

LAB = ROOT / "scripts/mtlab"


def packages(folder: Path) -> list[str]:
    """The packages that a folder's __init__.py lists, highest first."""
    return re.findall(r"^  (\w+) +\S", (folder / "__init__.py").read_text(), re.M)


def _imported(node: ast.ImportFrom, package: Path, top: Path) -> Iterator[Path]:
    """Files that an import statement of a module in a package names."""
    if node.level:
        base = [package, *package.parents][node.level - 1]
    elif (node.module or "").split(".")[0] == top.name:
        base = top.parent
    else:
        return
    base = base.joinpath(*(node.module or "").split("."))
    for name in [base, *(base / alias.name for alias in node.names)]:
        if (file := name.with_suffix(".py")).exists():
            yield file


def arrows(folder: Path) -> Arrows:
    """Which Python files below a folder import which, by their paths in it."""
    found: Arrows = {}
    for path in sorted(folder.rglob("*.py")):
        to = found.setdefault(str(path.relative_to(folder)), {})
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                for file in _imported(node, path.parent, folder):
                    to.setdefault(str(file.relative_to(folder)), f"imports {file.stem}")
    return found


def _package(file: str) -> str:
    return file.partition("/")[0] if "/" in file else ""


def upward(found: Arrows, order: list[str]) -> Iterator[str]:
    """Imports of a package from one above it, and modules that lie in none of the packages."""
    for file, to in found.items():
        if file == "__init__.py":
            continue
        if _package(file) not in order:
            yield f"{file} lies in none of the packages {', '.join(order)}"
            continue
        for other, why in to.items():
            if _package(other) in order[:order.index(_package(file))]:
                yield f"{file} {why}, which lies above it in {_package(other)}/"


def imported_tests(folder: Path) -> Iterator[str]:
    """Imports of a test by any file of a folder."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            yield from (f"{path.name} imports the test {name}, expected a module that is none" for name in names
                        if name.rpartition(".")[2].startswith("test_"))


def complaints() -> str:
    """All that is wrong with the lab's imports, a line each."""
    lab = arrows(LAB)
    said = [f"scripts/mtlab: {line}" for line in upward(lab, packages(LAB))]
    for name, found in (("scripts/mtlab", lab), ("scripts/experiments", arrows(ROOT / "scripts/experiments"))):
        if there := circle(found):
            said.append(f"{name}: a circle: {' -> '.join(there)}")
    for tests in ("target/tests", "emulator/tests", "scripts/tests"):
        said += [f"{tests}: {line}" for line in imported_tests(ROOT / tests)]
    return "\n".join(said)
