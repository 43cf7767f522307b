# SPDX-License-Identifier: GPL-2.0
"""Databases and synced files on fresh drives; mtlab/exp/applications.py has how."""

import functools

from mtlab.exp import applications

runs = functools.partial(applications.runs, "fresh")
samples, checks = applications.samples, applications.checks
table, draw = applications.table, applications.draw
ABOUT = applications.about(
    "Applications on a fresh drive",
    "Is a database faster on dm-mtftl than on other file systems of the same zoned flash?",
    "fresh.")
