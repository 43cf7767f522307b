# SPDX-License-Identifier: GPL-2.0
"""The parts' own unit tests, which run on the host through their Makefiles' check goal."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab import debian
from mtlab.base import BUILD, ROOT


def _checked() -> list[str]:
    """Folders whose Makefile has a check goal."""
    makefiles = [p for top in ("target", "emulator") for p in sorted((ROOT / top).rglob("Makefile"))]
    return [str(p.parent.relative_to(ROOT)) for p in makefiles if re.search(r"^check:", p.read_text(), re.M)]


@pytest.mark.parametrize("folder", _checked())
def test_make_check(folder: str, tmp_path: Path) -> None:
    debian.ensure("build", "tool", "test")
    done = subprocess.run(["make", "-s", "-C", ROOT / folder, f"BUILD={BUILD}/host", "check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
