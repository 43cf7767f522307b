# SPDX-License-Identifier: GPL-2.0
"""Lets the tests of the target import what lies beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
