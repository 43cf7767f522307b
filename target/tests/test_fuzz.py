# SPDX-License-Identifier: GPL-2.0
"""What the fuzzers have found worth keeping, under the sanitizers and without libFuzzer; see mtlab/cmd/fuzz.py."""

import re

import pytest
from mtlab.cmd import fuzz

KEPT_MOST = 1 << 20         # bytes of all that is kept


@pytest.mark.parametrize("name", fuzz.FUZZERS)
def test_kept_inputs(name: str) -> None:
    done = fuzz.replay(name)
    assert done.returncode == 0, done.stderr[-4000:]
    count = re.fullmatch(r"(\d+) inputs\n", done.stdout)
    assert count and int(count[1]) >= len([*fuzz.FUZZERS[name].kept.iterdir()]) > 0


def test_what_is_kept_is_small() -> None:
    assert sum(path.stat().st_size for f in fuzz.FUZZERS.values() for path in f.kept.iterdir()) < KEPT_MOST
