# SPDX-License-Identifier: GPL-2.0
"""From the packages to a mounted file system in a clean Debian 12 and 13, by the commands of docs/use/install.md.

The first command is typed in the clean Debian itself (packages/make-root), because the emulated machine takes long to
compile the module. The others are typed in a guest that boots this system. Its drive is an NVMe drive of QEMU, without
our model of flash. It has two zoned namespaces, since the kernel numbers namespaces as it finds them. The guest reboots
and looks for what was written. It also runs the packages' autopkgtest, on the namespace that the commands leave alone.
At last this namespace fails writes, and udev and the journal hear of it.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from mtlab.cmd import boots
from mtlab.run import qemu
from mtlab.run.options import NONE, Options
from mtlab.util.base import BUILD, ROOT, output

HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs/use/install.md"
MOST_COMMANDS = 3
ZONED = ",".join(f"{name}={value}" for name, value in qemu.STOCK_DEVICE.items())


def typed() -> list[str]:
    """The commands that the page has for a new drive, without their comments."""
    section = PAGE.read_text().split("## A new drive\n")[1].split("\n## ")[0]
    block = re.search(r"\n\n((?:    .*\n)+)", section)
    assert block
    return [line.split("  #")[0].strip() for line in block[1].splitlines()]


def test_few_commands() -> None:
    first, *others = typed()
    assert first.startswith("sudo apt install ./build/deb/dm-mtftl-dkms_")
    assert others and len(typed()) <= MOST_COMMANDS


@pytest.fixture(params=["bookworm", "trixie"])
def installed(request: pytest.FixtureRequest, emulator_binary: Path, tmp_path: Path) -> Path:
    """A folder with a disk (disk) on which the packages are installed, and with a kernel and its initramfs."""
    root = BUILD / "roots" / request.param
    if os.geteuid() or not root.with_suffix(".done").exists():
        pytest.skip(f"no clean {root.name}: target/tests/packages/make-root {root.name} {BUILD}, as root")
    return boots.make_system(root, tmp_path, "installed", f"{typed()[0]}\n")


def disk(system: Path, folder: Path) -> Path:
    """A disk with an installed system, and with what its boots are to do."""
    tree, image = folder / "tree", folder / "disk"
    tree.mkdir()
    output(["tar", "-C", tree, "-x", "-f", system / "root.tar"])
    output(["install", HERE / "boot/installed-test", tree / "usr/local/sbin"])
    output(["install", "-m", "644", HERE / "boot/installed-test.service", tree / "etc/systemd/system"])
    (tree / "etc/systemd/system/multi-user.target.wants/installed-test.service").symlink_to(
        "../installed-test.service")
    output(["install", ROOT / "target/packaging/debian/tests/reboot", tree / "opt/autopkgtest"])
    (tree / "opt/typed").write_text("\n".join(typed()[1:]) + "\n")
    output(["mkfs.ext4", "-q", "-d", tree, image, "2G"])
    subprocess.run(["rm", "-r", tree], check=True)
    return image


def namespaces(folder: Path) -> list[str]:
    """QEMU's arguments for a drive with two zoned namespaces."""
    arguments = ["-device", "nvme,id=nvme0,serial=drive"]
    for number in (1, 2):
        media = folder / f"media-{number}"
        with open(media, "ab") as file:
            file.truncate(2 << 30)
        arguments += ["-drive", f"file={media},id=media{number},format=raw,if=none,cache=unsafe,discard=unmap",
                      "-device", f"nvme-ns,bus=nvme0,nsid={number},drive=media{number},{ZONED}"]
    return arguments


def test_packages_to_a_mounted_file_system(installed: Path, emulator_binary: Path, tmp_path: Path) -> None:
    """And it is there after a reboot; so is that of the autopkgtest. Before that, wrong words leave its drive alone."""
    options = Options(cpus=1, memory="1G", profile=NONE)
    arguments = [*boots.boot_arguments(emulator_binary, options, installed, f"root=/dev/vda {boots.WORDS}"),
                 "-drive", f"file={disk(installed, tmp_path)},format=raw,if=virtio,cache=unsafe",
                 *namespaces(tmp_path)]
    # One QEMU for both boots: when it ends, its own zoned namespaces forget what was written.
    heard = boots.listen([word.replace("reboot=shutdown", "reboot=reset") for word in arguments], tmp_path, "both")
    what = f"{heard.said}\n{heard.console[-6000:]}"
    said = [line[2:] for line in heard.said.splitlines() if line.startswith("@ ")]
    mount = r"/dev/mapper/fast /srv ext4 rw,relatime.*"
    wanted = ["typed", f"mounted: {mount}",
              "refused 8: mtftl-setup: /etc/mtftltab has a device fast already, expected .*",
              "refused 8: mtftl-setup: /srv: something is mounted there, expected nothing",
              "refused 16: mtftl-setup: folder 'srv', expected .*",
              "refused 16: mtftl-setup: name '.other', expected .*",
              "autopkgtest: 0", "ready for reboot",
              f"again: {mount}", "content: /srv/content: OK", "autopkgtest: 0",
              "watch of fast: active", "udev: SYNTH_ARG_MTFTL=readonly",
              "journal: layered is read-only, .*", "catalog: The mtftl device layered has turned read-only",
              "its watch ended", "ready for poweroff"]
    assert len(said) == len(wanted) and all(map(re.fullmatch, wanted, said)) and heard.status == 0, what
