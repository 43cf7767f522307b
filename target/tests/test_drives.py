# SPDX-License-Identifier: GPL-2.0
"""Each kind of zoned drive that a kernel can make, as docs/use/drives.md lists them."""

import json

import pytest
from mtlab.build import kernels
from mtlab.cmd import drives

# What is tried in each run of the tests: `scripts/lab drives` tries all kinds.
OFTEN = "null_blk, conventional zones, 4 open zones, blocks of 512"


@pytest.mark.parametrize("kernel", kernels.SERIES)
def test_any_zoned_drive(run_script, kernel):
    """None fails, and what becomes of a kind is what `scripts/lab drives` measured, if it was tried."""
    result = run_script("any_zoned_drive", OFTEN, kernel=kernel, push=drives.pushed(kernel))
    found = drives.became(result)
    measured = json.loads(drives.MEASURED.read_text()).get(kernel, {"kinds": {}})["kinds"]
    assert found
    assert {kind: said for kind, said in found.items() if kind in measured} == {
        kind: said for kind, said in measured.items() if OFTEN in kind}
    assert [kind for kind, said in found.items() if said.startswith("failed")] == []


def test_no_kind_failed():
    """A cell of the table says that the drive works, or why it does not."""
    measured = json.loads(drives.MEASURED.read_text())
    assert set(measured) <= set(kernels.SERIES)
    said = [said for of in measured.values() for said in of["kinds"].values()]
    assert len(said) >= 60
    assert [one for one in said if one != "works" and not one.startswith(("refused: ", "absent: "))] == []
