# SPDX-License-Identifier: GPL-2.0
"""`lab vm`: what it refuses, and a Debian of its making, from its boot loader to a power cut."""

import contextlib
import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mtlab.build import debian, emulator, image
from mtlab.cmd import cli, vm
from mtlab.util.base import ROOT, LabError

PACKAGES = ["rocksdb-tools"]
BENCH = "db_bench --db=/srv/db --num=200000 --value_size=400 --compression_type=none"


def _lab_vm(*words: str | Path) -> int:
    args = cli._parser().parse_args(["vm", *map(str, words)])
    return int(args.function(args))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(bytes(4096))
    return path


def test_an_image_is_known_by_its_first_bytes(disk: Path) -> None:
    assert vm.kind_of(disk) == "raw"
    disk.write_bytes(b"QFI\xfb" + bytes(100))
    assert vm.kind_of(disk) == "qcow2"


def test_what_cannot_be_is_refused_before_anything_is_built(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def built(*_words: object) -> Path:
        raise AssertionError("something is built")

    monkeypatch.setattr(emulator, "build", built)
    monkeypatch.setattr(image, "disk", built)
    with pytest.raises(LabError, match="there is no such image; --make makes one"):
        _lab_vm(disk.with_name("none"), "--port", 0)
    with pytest.raises(LabError, match="--with sl: expected --make"):
        _lab_vm(disk, "--port", 0, "--with", "sl")
    with pytest.raises(LabError, match="disk exists; --make makes a new one"):
        _lab_vm(disk, "--port", 0, "--make")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(LabError, match="in use"):
        _lab_vm(disk, "--port", taken.getsockname()[1])


def test_the_boot_sector_has_a_table_of_one_partition() -> None:
    sector = image._boot_sector(b"\xeb\x63" + b"\x90" * 510)
    state, kind, first, count = struct.unpack("<B3xB3xII", sector[446:462])
    assert len(sector) == 512 and sector[:2] == b"\xeb\x63" and sector[510:] == b"\x55\xaa"
    assert (state, kind, first * 512, (first + count) * 512) == (0x80, 0x83, image.START, image.SIZE)
    assert not any(sector[440:446]) and not any(sector[462:510])


def test_the_lab_s_own_emulator_has_nothing_of_the_other() -> None:
    assert not {word for word in emulator.LAB.configure if re.search("slirp|aio|uring", word)}
    assert "--without-default-devices" not in emulator.FULL.configure and emulator.FULL.tree != emulator.LAB.tree


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind((vm.ADDRESS, 0))
        return int(trial.getsockname()[1])


def _ssh(settings: Path, command: str) -> list[str | Path]:
    return ["ssh", "-F", settings, "guest", command]


@contextlib.contextmanager
def _booted(disk: Path, drive: Path, settings: Path) -> Iterator["subprocess.Popen[str]"]:
    """A guest that has come to its login; it loses its power at the end of the block."""
    port = _free_port()
    settings.write_text(vm.ssh_settings(port))
    guest = subprocess.Popen([ROOT / "scripts/lab", "vm", disk, "--port", str(port), "--media", drive,
                              "--device", "flash.size=64G"], text=True, errors="replace",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert guest.stdout
    said = ""
    try:
        while not re.search(r"guest login: *$", said):
            new = guest.stdout.read(1)
            assert new, f"the guest ended\n{said[-3000:]}"
            said += new
        yield guest
    finally:
        guest.kill()            # and with it the emulator, which the kernel kills
        guest.stdout.read()     # until the emulator is gone, too
        guest.wait()


@pytest.mark.night
@pytest.mark.timeout(7200)
def test_a_guest_and_its_database_survive_a_cut(emulator_binary: Path, tmp_path: Path) -> None:
    """Typed as docs/lab/own-machine.md has it."""
    mirror, _ = debian.mirror()
    if subprocess.run(["/usr/lib/apt/apt-helper", "download-file", f"{mirror}/dists/{debian.codename()}/InRelease",
                       tmp_path / "release"], capture_output=True).returncode:
        pytest.skip(f"mmdebstrap cannot reach {mirror}")
    disk, drive, settings = tmp_path / "debian.qcow2", tmp_path / "drive", tmp_path / "ssh"
    image.make(disk, PACKAGES)

    def typed(command: str) -> str:
        done = subprocess.run(_ssh(settings, command), capture_output=True, text=True)
        assert not done.returncode, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    with _booted(disk, drive, settings):
        typed("mtftl-setup /dev/nvme0n1 fast /srv")
        # More than the guest's memory.
        assert float(typed("lsblk -bndo SIZE /dev/mapper/fast")) > 40e9
        assert "fillseq" in typed(f"{BENCH} --benchmarks=fillseq 2>&1")
        with subprocess.Popen(_ssh(settings, "for i in $(seq 100000); do echo $i >>/srv/count; sync /srv/count; "
                                   f"echo $i; done & {BENCH} --use_existing_db=1 --benchmarks=overwrite,overwrite "
                                   "--sync=1 >/srv/log 2>&1"), stdout=subprocess.PIPE, text=True) as writes:
            assert writes.stdout
            for line in writes.stdout:
                if (safe := int(line)) == 30:
                    break
            writes.kill()
    with _booted(disk, drive, settings):
        assert safe <= int(typed("tail -n 1 /srv/count"))
        assert "mount: " in typed("dmesg | grep 'units newer'")
        read = typed(f"{BENCH} --use_existing_db=1 --benchmarks=readseq --verify_checksum=1 2>&1")
        assert re.search(r"readseq .* (\d+) ops|readseq +:", read), read
        assert "OK" in typed("ldb --db=/srv/db checkconsistency")
