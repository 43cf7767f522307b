# SPDX-License-Identifier: GPL-2.0-or-later
"""What the emulator's tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def bios(tmp_path: Path) -> Path:
    """Firmware that halts."""
    image = tmp_path / "bios"
    image.write_bytes(b"\xf4" * 65536)
    return image
