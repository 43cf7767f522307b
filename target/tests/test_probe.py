# SPDX-License-Identifier: GPL-2.0
"""What Kbuild finds out about a kernel, from headers in the shape of many versions and from those that are here."""

import subprocess
from pathlib import Path

import pytest
from mtlab.build import kernels, target
from mtlab.util.base import ROOT

TARGET = ROOT / "target"
SHAPES = TARGET / "tests/shapes"

# What kbuild would bring along, and the goal.
MAKEFILE = f"""
src := {TARGET}
obj := .
CC := gcc
c_flags = -std=gnu11 -Wall -Wno-unused -I{SHAPES} $(SHAPE)
filechk = {{ $(filechk_$(1)); }} > $@
all: $(obj)/probed.h
include $(src)/Kbuild
.PHONY: FORCE
"""

OLDEST = {"BIP_BIO", "DEL_TIMER_SYNC", "DISK_OPEN_ZONES", "HRTIMER_INIT", "INTEGRITY_PROFILE", "LIMITS_MISALIGNED",
          "LIMITS_ZONED", "TUPLE_SIZE", "ZONED_MODEL", "ZONE_MGMT_GFP"}
FOUND = {
    601: OLDEST,
    608: OLDEST - {"ZONED_MODEL"} | {"SRCU_DOWN_READ"},
    609: {"BIP_BIO", "DEL_TIMER_SYNC", "HRTIMER_INIT", "INTEGRITY_PROFILE", "LIMITS_MISALIGNED", "LIMITS_ZONED",
          "TUPLE_SIZE", "SRCU_DOWN_READ", "WRITE_HINT"},
    611: {"BIP_BIO", "DEL_TIMER_SYNC", "HRTIMER_INIT", "TUPLE_SIZE", "SRCU_DOWN_READ", "WRITE_HINT"},
    615: {"TUPLE_SIZE", "SRCU_DOWN_READ", "WRITE_HINT"},
    617: {"TUPLE_SIZE", "SRCU_DOWN_READ", "WRITE_HINT", "WZEROES_UNMAP"},
    703: {"SRCU_DOWN_READ", "WRITE_HINT", "WZEROES_UNMAP"},
}
FOUND[610] = FOUND[609]
FOUND[612] = FOUND[613] = FOUND[611]
FOUND[618] = FOUND[799] = FOUND[703]

BACKPORTS = {
    "6.1 with what 6.8 says of zones": (601, "SHAPE_HOST_AWARE=0", OLDEST - {"ZONED_MODEL"}),
    "6.1 as it was first": (601, "SHAPE_TIMER_DELETE=0", OLDEST),
    "6.6 with the block layer of 6.11": (606, "SHAPE_HOST_AWARE=0 SHAPE_MGMT_GFP=0 SHAPE_DISK_LIMITS=0"
                                         " SHAPE_FEATURES=1 SHAPE_PROFILE=0 SHAPE_WRITE_HINT=1", FOUND[611]),
    "6.12 with the timers of 6.15": (612, "SHAPE_DEL_TIMER=0 SHAPE_HRTIMER_INIT=0 SHAPE_HRTIMER_SETUP=1",
                                     FOUND[612] - {"DEL_TIMER_SYNC", "HRTIMER_INIT"}),
    "6.12 that allocates by type": (612, "SHAPE_ALLOC_OBJ=1", FOUND[612]),
    "6.14 without bip_bio": (614, "SHAPE_BIP_BIO=0", FOUND[613] - {"BIP_BIO"}),
}


def probe(folder: Path, flags: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["make", "-s", "-f", "-", f"SHAPE={flags}", *words], cwd=folder, input=MAKEFILE, text=True,
                          capture_output=True)


def found(folder: Path) -> set[str]:
    return {line.removeprefix("#define MTFTL_HAS_") for line in (folder / "probed.h").read_text().splitlines()}


def check(folder: Path, flags: str, expected: set[str]) -> None:
    done = probe(folder, flags)
    assert done.returncode == 0, done.stderr
    assert found(folder) == expected
    # And what follows from it compiles there.
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only", f"-I{SHAPES}",
                    f"-I{TARGET}", f"-I{folder}", *flags.split(), SHAPES / "use.c"], check=True)


@pytest.mark.parametrize("shape", sorted(FOUND))
def test_shapes(shape: int, tmp_path: Path) -> None:
    check(tmp_path, f"-DSHAPE={shape}", FOUND[shape])


@pytest.mark.parametrize("name", BACKPORTS)
def test_backports(name: str, tmp_path: Path) -> None:
    shape, differs, expected = BACKPORTS[name]
    check(tmp_path, f"-DSHAPE={shape} " + " ".join(f"-D{word}" for word in differs.split()), expected)


def test_versions_are_not_asked() -> None:
    for path in [*target.module_sources(), TARGET / "Kbuild"]:
        assert "KERNEL_VERSION" not in path.read_text() and "LINUX_VERSION" not in path.read_text(), path


def test_headers_that_do_not_compile_stop_the_build(tmp_path: Path) -> None:
    """Else a probe that fails because of these would count as an answer."""
    done = probe(tmp_path, "-DSHAPE=612 -include no-such-header.h")
    assert done.returncode and "no-such-header.h" in done.stderr
    done = probe(tmp_path, "-DSHAPE=612 -Dhrtimer=1")
    assert done.returncode and "error:" in done.stderr


def test_a_compiler_that_says_nothing_stops_the_build(tmp_path: Path) -> None:
    assert probe(tmp_path, "-DSHAPE=612", "CC=true").returncode
    assert probe(tmp_path, "-DSHAPE=612", "CC=no-such-compiler").returncode


@pytest.mark.parametrize("series, shape", [("6.1", 601), ("6.12", 612), ("current", 703)])
def test_the_kernels_that_are_here(series: str, shape: int) -> None:
    module = target.module(kernels.get(series))
    assert module and found(module.parent) == FOUND[shape]
