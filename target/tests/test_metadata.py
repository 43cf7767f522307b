# SPDX-License-Identifier: GPL-2.0
"""A script of guest/ for headers in metadata, on several kernels and shapes of metadata."""

import pytest
from mtlab.build import kernels

# Kernel, metadata a block, options of the table.
SHAPES = {
    "6.12": ("6.12", "16", ""),
    "current": (kernels.CURRENT, "16", "gc_policy greedy placement none"),
    "units of one": ("6.12", "16", "write_unit 1 lanes 2"),
    "64 bytes, plain writes": ("6.12", "64", "append off"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_data_is_kept_without_headers(run_script, shape):
    """Written over and over with GC at work and read back; after a stop; and what was flushed, after a power cut."""
    kernel, meta, options = SHAPES[shape]
    run_script("data_is_kept_without_headers", *options.split(), kernel=kernel, device={"ms": meta})
