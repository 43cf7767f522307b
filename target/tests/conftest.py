# SPDX-License-Identifier: GPL-2.0
"""What the target's tests share; and lets them import what lies beside them."""

import sys
from pathlib import Path

import pytest
from mtlab.build import guest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def helpers() -> list[Path]:
    """To be pushed: what scripts source (guest.sh), and the programs that they call."""
    return [HERE / "guest.sh", *(guest.program(name, HERE) for name in ("blocks", "pty"))]


@pytest.fixture(scope="session")
def meanwhile() -> Path:
    """To be pushed: the library that lets something happen between two of the tool's steps."""
    return guest.program("meanwhile", HERE, ("-D_GNU_SOURCE", "-shared", "-fPIC"))
