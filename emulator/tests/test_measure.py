# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/emulator/measure.md: its commands are typed in a guest, and give back what the drive was made of."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.build import debian

PAGE = Path(__file__).resolve().parents[2] / "docs/emulator/measure.md"
BLOCK = r"(?:^    .*\n|^\n(?=    ))+"
KIB, MIB = 1024, 1024 * 1024
# The times of zn540 on 2 x 2 dies. A zone has 16 erase blocks on each, and 720 program units.
DRIVE = {"flash.channels": "2", "flash.dies": "2", "flash.size": "4G", "zoned.zone_size": "256M",
         "zoned.zone_capacity": "135M"}
# Without a drive: fio only reads its command lines, and each command takes 7 us.
STUBS = r"""set -eo pipefail
traced() { printf 'x-1 [000] 3.%06d: nvme_%s: qid=1, cmdid=1, cmd=(x)\n' 1 setup_cmd 8 complete_rq >>trace; }
fio() { printf '%s\n' "$*" >>lines; command fio --parse-only "$@" >/dev/null; traced; }
blkzone() { echo cap 0x043800; traced; }
nvme() { printf "mor\nmdts\n"; traced; }
"""


def commands() -> str:
    """What a reader types, without the lines for the lab."""
    blocks = [re.sub("^    ", "", found, flags=re.M) for found in re.findall(BLOCK, PAGE.read_text(), re.M)]
    return "".join(block for block in blocks if "scripts/lab" not in block)


def test_fio_takes_each_line(tmp_path: Path) -> None:
    debian.ensure("guest")
    (tmp_path / "chunk_sectors").write_text("524288\n")
    for event in ("setup_cmd", "complete_rq"):
        (tmp_path / f"events/nvme/nvme_{event}").mkdir(parents=True)
    script = commands().replace("/dev/nvme0n1", "/dev/null").replace("/sys/kernel/tracing", ".")
    script = re.sub(r"/sys/block/\S*/chunk_sectors", "chunk_sectors", script)
    done = subprocess.run(["bash"], input=STUBS + script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "lines").read_text().splitlines()) == 17
    assert done.stdout.count("1 commands, 7.0 us each, 7 us in all") == 15


def test_the_drive_is_found(lab_run) -> None:
    result = lab_run(commands(), clock="virtual", cpus=4, module=False, profile="zn540", device=DRIVE, timeout=900)
    assert result.status == 0, result.output
    times = re.findall(r"^(\S+): \d+ commands, ([\d.]+) us each, (\d+) us in all", result.output, re.M)
    each = {name: float(us) * 1000 for name, us, _ in times}
    span = {name: int(us) * 1000 for name, _, us in times}
    rates = {name: (int(kib) * KIB / 1e9, int(ios) / 1e9)      # by ns
             for name, kib, ios in re.findall(r"^(\S+): (\d+) KiB/s, (\d+) a second", result.output, re.M)}
    interrupt = 1500
    # A read grows by the transfer within a row of pages, by a cell read with each row, and not at all beyond a unit.
    channel = 12 * KIB / (each["read-16"] - each["read-4"] - (each["write-16"] - each["write-4"]))
    read = (each["read-48"] - each["read-16"]) / 2
    assert each["read-32"] == pytest.approx(each["read-16"] + read, rel=0.02)
    assert each["read-96"] == pytest.approx(each["read-48"], rel=0.02)
    dies = rates["reads"][1] * read
    program = 4 * 48 * KIB / rates["zones"][0]
    found = {
        "channel_rate": (channel, 1.2), "read_ns": (read, 60_000), "dies": (dies, 4),
        "program_ns": (program, 1_263_200),
        "read_cmd_ns": (each["read-4"] - interrupt - read - 4 * KIB / channel, 9_187),
        "write_cmd_ns": (each["write-4"] - interrupt, 11_400),
        "zone_dies": (4 * rates["zone"][0] / rates["zones"][0], 4),
        "buffer": (12 * MIB - rates["zones"][0] * span["buffer"], 3 * MIB),
        "reset_ns": (each["reset-0"], 1_650_000), "erase_ns": (each["reset-1"] - each["reset-0"], 3_750_000),
        "erase_more_ns": ((each["reset-3"] - each["reset-2"]) / 8, 745_000),
        "finish": (each["finish"], 360 * (1_263_200 + 48 * KIB / 1.2)),
    }
    print({name: value for name, (value, _) in found.items()})
    for name, (value, set_to) in found.items():
        # The firmware's part of a read is what the others leave: it has their errors.
        within = {"abs": 1_500} if name == "read_cmd_ns" else {"rel": 0.05}
        assert value == pytest.approx(set_to, **within), name
