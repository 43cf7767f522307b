# SPDX-License-Identifier: GPL-2.0
"""Databases and synced files on drives that were filled and overwritten; mtlab/exp/applications.py has how."""

import functools

from mtlab.exp import applications
from mtlab.exp.experiments import Check, Sample

runs = functools.partial(applications.runs, "aged")
samples, table, draw = applications.samples, applications.table, applications.draw


def checks(found: list[Sample], quick: bool) -> list[Check]:
    return [*applications.checks(found, quick), *applications.tails(found)]


ABOUT = applications.about(
    "Applications on an aged drive",
    "Is a database faster on dm-mtftl than on other file systems, once the drive is full enough for GC?",
    f"{applications.BALLAST_MIB} MiB of files on it were overwritten at random before, for "
    f"{applications.AGE_MS / 1000:g} s or once over, whichever was less.")
