# SPDX-License-Identifier: GPL-2.0
"""Makes the lab's package and fixtures known to every test of the project."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))

pytest_plugins = ["mtlab.run.testing"]
