# SPDX-License-Identifier: GPL-2.0
"""The rule of the lab's packages: what `make lint` must see."""

import subprocess
from pathlib import Path

from mtlab.cmd import imports, layers, quality
from mtlab.util.base import ROOT


def _lab(folder: Path, **modules: str) -> Path:
    """A package `lab` of two packages, low and high; modules are named PACKAGE__MODULE."""
    top = folder / "lab"
    top.mkdir()
    (top / "__init__.py").write_text('"""A lab.\n\n  high  above\n  low   below\n"""\n')
    for name, text in modules.items():
        path = top / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    return top


def _upward(top: Path) -> list[str]:
    return list(imports.upward(imports.arrows(top), imports.packages(top)))


def test_imports_that_go_down_are_passed(tmp_path: Path) -> None:
    top = _lab(tmp_path, high__a="from ..low import b\nfrom ..low.b import c\nfrom . import d", high__d="import os",
               low__b="from pathlib import Path")
    assert imports.arrows(top)["high/a.py"].keys() == {"low/b.py", "high/d.py"}
    assert not _upward(top)
    assert not layers.circle(imports.arrows(top))


def test_an_import_from_above_is_found(tmp_path: Path) -> None:
    """However it is written, also inside a function."""
    for number, text in enumerate(("from ..high import a", "from ..high.a import x", "from lab.high import a",
                                   "def f():\n    from lab.high.a import x")):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert _upward(_lab(folder, high__a="", low__b=text)) == ["low/b.py imports a, which lies above it in high/"]


def test_a_module_has_a_package(tmp_path: Path) -> None:
    assert _upward(_lab(tmp_path, attic__a="", b="")) == ["attic/a.py lies in none of the packages high, low",
                                                          "b.py lies in none of the packages high, low"]


def test_a_circle_is_found(tmp_path: Path) -> None:
    top = _lab(tmp_path, low__a="from . import b", low__b="from .c import x", low__c="from lab.low.a import x",
               low__d="from . import a")
    assert set(layers.circle(imports.arrows(top))) == {"low/a", "low/b", "low/c"}


def test_a_test_that_imports_another_is_found(tmp_path: Path) -> None:
    for number, text in enumerate(("import test_b", "from test_b import x", "def f():\n    import test_b",
                                   "from tests.test_b import x")):
        (tmp_path / f"test_a{number}.py").write_text(text + "\n")
    (tmp_path / "test_c.py").write_text("import media\nfrom mtlab.run.testing import LabRun\n")
    assert [line.split()[0] for line in imports.imported_tests(tmp_path)] == [f"test_a{n}.py" for n in range(4)]


def test_our_own_imports_go_down() -> None:
    assert not imports.complaints()
    assert imports.packages(imports.LAB) == ["cmd", "exp", "run", "build", "util"]


def test_the_lab_begins_with_python_alone() -> None:
    """On a fresh machine: it installs what is missing, so it must come as far as that without any of it."""
    done = subprocess.run([quality.PYTHON, "-S", "-B", ROOT / "scripts/lab", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
