# SPDX-License-Identifier: GPL-2.0-or-later
"""The FTL inside a drive: against an array on the host, with planted bugs, its write amplification."""

import math
import os
import re
import subprocess
from pathlib import Path

import pytest
from test_flash import HERE, MODEL, PURE, compile_c

SANITIZED = ["-O2", "-fsanitize=address,undefined"]
MAPPINGS = ("page", "dftl", "bast", "fast", "last")
SEEDS = range(1, 13)
SOURCES = [*(MODEL / f"flash-{x}.c" for x in PURE), *sorted(MODEL.glob("flash-ftl*.c"))]


def build(target: Path, program: str, *flags: str, sources: list[Path] = SOURCES) -> Path:
    return compile_c(target, *flags, f"-I{MODEL}", HERE / program, *sources)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("ftl") / "sanitized", "test_ftl.c", *SANITIZED)


def run(program: Path, *args: str | int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_against_an_array(sanitized: Path, mapping: str) -> None:
    """Random commands and power cuts on a dozen small drives; MTFTL_FTL_OPERATIONS asks for more."""
    operations = int(os.environ.get("MTFTL_FTL_OPERATIONS", 60000))
    for seed in SEEDS:
        done = run(sanitized, mapping, operations // len(SEEDS), seed)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


def test_the_mapping_of_the_docs(tmp_path: Path) -> None:
    """One file and two lines, as docs/emulator.md says."""
    ring = tmp_path / "flash-ftl-ring.c"
    ring.write_text((HERE.parent.parent / "docs/emulator.md").read_text().split("```c\n")[1].split("```")[0])
    # includes with quotes look beside the source first: so all of the FTL goes there
    files = {x.name: x.read_text() for x in MODEL.glob("flash-ftl*.[ch]")}
    for file, line in (("flash-ftl-mappings.h", "extern const FtlMapping ftl_last;"),
                       ("flash-ftl.c", "    &ftl_last,")):
        assert files[file].count(line) == 1
        files[file] = files[file].replace(line, line + "\n" + line.replace("last", "ring"))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    program = build(tmp_path / "ring", "test_ftl.c", *SANITIZED, f"-I{tmp_path}", sources=[
        *(x for x in SOURCES if not x.name.startswith("flash-ftl")), *sorted(tmp_path.glob("*.c"))])
    for seed in SEEDS:
        done = run(program, "ring", 3000, seed)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


# A bug, what has it, the line and what becomes of it, the mapping that shows it.
PLANTED = [
    ("erased before the moved blocks are on flash", "flash-ftl-core.c",
     "        job_step(ftl, job, FLASH_CMD_FLUSH, 0);\n", "", "page"),
    ("a stale version wins at power on", "flash-ftl-core.c",
     "oob->version > versions[lba]", "!versions[lba]", "page"),
    ("a lost trim", "flash-ftl.c", "            ftl->trims[lba] = ++ftl->version;\n", "", "page"),
    ("a trim that leaves the map alone", "flash-ftl.c", "            ftl_unmap(ftl, lba);\n", "", "page"),
    ("the map is not rebuilt", "flash-ftl-core.c",
     "            map_to(ftl, lba, (uint64_t)block * ftl->cap + i);\n", "", "page"),
    ("a stale log page wins at power on", "flash-ftl-core.c", "oob->version > versions[lba]", "!versions[lba]", "fast"),
    ("a wrong merge: a log block out of order is switched", "flash-ftl-hybrid.c",
     "log != FTL_NONE && in_order(ftl, piece, log)", "log != FTL_NONE", "bast"),
    ("a wrong merge: another piece's log goes with it", "flash-ftl-fast.c", "ours ? take_in_order(fast)",
     "fast->in_order != FTL_NONE ? take_in_order(fast)", "fast"),
    ("merged before the moved blocks are on flash", "flash-ftl-core.c",
     "        job_step(ftl, job, FLASH_CMD_FLUSH, 0);\n", "", "last"),
    ("half of the map is not rebuilt", "flash-ftl-core.c", "        if (lba < ftl->space &&",
     "        if (lba <= ftl->space / 2 &&", "dftl"),
    ("writes that take GC's last blocks", "flash-ftl-page.c",
     "        return FTL_NONE;        /* GC needs what is left */\n", "", "page"),
]


@pytest.mark.parametrize("name,file,line,planted,mapping", PLANTED, ids=[x[0] for x in PLANTED])
def test_planted_bugs(tmp_path: Path, name: str, file: str, line: str, planted: str, mapping: str) -> None:
    """Each is found by one of the drives: the test above would see it."""
    text = (MODEL / file).read_text()
    assert text.count(line) == 1
    (tmp_path / file).write_text(text.replace(line, planted))
    program = build(tmp_path / "planted", "test_ftl.c", "-Wno-error",
                    sources=[tmp_path / file if x.name == file else x for x in SOURCES])
    assert any(run(program, mapping, 5000, seed).returncode for seed in SEEDS)


def greedy(ratio: float, pages: int) -> float:
    """Write amplification of greedy GC under uniform random writes; ratio: flash with data over what the host sees.

    Each write makes a page stale, in a block of n valid pages with a chance of n: so the number of blocks that have n
    is as 1/n, down to the m of the victims, and ratio = pages (H(pages) - H(m)) / (pages - m). With large
    blocks that is Xiang and Kurkoski's a / (a + W(-a exp(-a))) of 2011.
    """
    def harmonic(n: float) -> float:
        return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)

    least, most = 1e-3, pages - 1e-3
    for _ in range(100):
        m = (least + most) / 2
        if pages * (harmonic(pages) - harmonic(m)) / (pages - m) > ratio:
            least = m
        else:
            most = m
    return pages / (pages - m)


@pytest.fixture(scope="module")
def waf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("ftl") / "waf", "ftl_waf.c", "-O2")


@pytest.mark.parametrize("spare", [7, 15, 25, 50])
def test_write_amplification(waf: Path, spare: int) -> None:
    done = run(waf, spare, 512, 256, 4)
    assert done.returncode == 0, done.stdout
    host, moved, ratio = map(float, re.findall(r"[\d.]+", done.stdout))
    assert (host + moved) / host == pytest.approx(greedy(ratio, 256), rel=0.02)
