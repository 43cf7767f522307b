# SPDX-License-Identifier: GPL-2.0
"""A disk with a Debian for a guest of a user's own (`lab vm --make`): it boots by itself, with ssh and the target.

mmdebstrap installs the machine's own suite, as root or in a user namespace. DKMS builds the target in there, from the
packages of `make deb`. A disk is kept in BUILD/vm by the hash of what it is made of.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from ..util.base import BUILD, LabError, digest, fresh_folder, lock, logged, need_space, output, say
from . import debian, target

HOME = BUILD / "vm"
KEY = HOME / "key"
VERSION = "1"               # of what is made of the same packages
SIZE = 16 << 30             # bytes of the disk, which is sparse
START = 1 << 20             # byte at which its one partition begins; before it is the boot loader
SECTOR = 512
SSH = "root/.ssh"           # in the new system: whose keys enter
PACKAGES = """linux-image-amd64 linux-headers-amd64 dkms systemd-sysv udev dbus libpam-systemd openssh-server
    iproute2 e2fsprogs xfsprogs nvme-cli dmsetup kmod fio grub-pc-bin""".split()
LOADER = """set root=(hd0,msdos1)
linux /vmlinuz root=LABEL=root ro console=ttyS0
initrd /initrd.img
boot
"""
# In the new system. Sshd listens from the moment that there is a network. Root has no password at the console, and
# none that ssh takes.
SETUP = r"""set -e
echo guest >/etc/hostname
echo 'LABEL=root / ext4 errors=remount-ro 0 1' >/etc/fstab
printf '[Match]\nName=e*\n[Network]\nDHCP=yes\n' >/etc/systemd/network/80-guest.network
echo nameserver 10.0.2.3 >/etc/resolv.conf
systemctl -q enable systemd-networkd ssh.socket
systemctl -q disable ssh.service
systemctl -q mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online.service
passwd -q -d root
apt-get -q install -y --no-install-recommends /tmp/debs/*.deb
for modules in /lib/modules/*; do
	dkms autoinstall -k "${modules##*/}"
	modinfo -k "${modules##*/}" dm-mtftl >/dev/null
done
rm -r /tmp/debs
grub-mkimage -O i386-pc -p /boot/grub -c /tmp/loader -o /tmp/core.img biosdisk part_msdos ext2 linux
"""


def _key() -> str:
    """The public half of the key by which ssh enters; the pair is made once."""
    with lock("vm-key"):
        if not KEY.exists():
            HOME.mkdir(parents=True, exist_ok=True)
            output(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "dm-mtftl", "-f", KEY])
    return KEY.with_suffix(".pub").read_text()


def _debs() -> Path:
    """The folder of the target's Debian packages."""
    debian.ensure("build", "deb", "tool")
    source = HOME / "source"
    with lock("vm-debs"):
        output([target.SOURCE / "packaging/source-tree", source])
        folder = HOME / f"debs-{digest(*(p for p in sorted(source.rglob('*')) if p.is_file()))}"
        if not folder.exists():
            say("building the target's packages")
            with fresh_folder(folder) as part:
                logged([target.SOURCE / "packaging/build-deb", part], BUILD / "log/vm-debs.log")
    return folder


def make(path: Path, packages: Sequence[str]) -> None:
    """Write a disk in QEMU's own format (qcow2) with these packages besides those that each has."""
    if path.exists():
        raise LabError(f"{path} exists; --make makes a new one")
    debian.ensure("image")
    found = disk(packages)
    say(f"writing {path}")
    part = path.with_name(f"{path.name}.part")
    output(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", found, part])
    part.rename(path)


def disk(packages: Sequence[str]) -> Path:
    """The raw disk with these packages; made if it is not there yet."""
    key, debs, wanted = _key(), _debs(), [*PACKAGES, *packages]
    suite = debian.codename()
    folder = HOME / f"debian-{digest(VERSION, suite, key, debs.name, SETUP, LOADER, *wanted)}"
    with lock("vm-image"):
        if not folder.exists():
            need_space(BUILD, 8, "a disk with a Debian")
            say(f"installing {suite} on a disk, with the target (4 minutes on 2 cores)")
            with fresh_folder(folder) as part:
                _install(part, suite, key, debs, wanted)
    return folder / "disk"


def _install(part: Path, suite: str, key: str, debs: Path, packages: Sequence[str]) -> None:
    """Let mmdebstrap make the file system, and put it behind a boot loader."""
    for name, text in {"key": key, "loader": LOADER, "setup": SETUP}.items():
        (part / name).write_text(text)
    settings = [f"--aptopt={line}" for line in output(["apt-config", "dump"]).splitlines()
                if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets")]
    mirror, signed = debian.mirror()
    hooks = [f'mkdir -p "$1/{SSH}" "$1/tmp/debs"', f"upload {part}/key /{SSH}/authorized_keys",
             f"upload {part}/loader /tmp/loader", f"upload {part}/setup /tmp/setup",
             *(f"upload {deb} /tmp/debs/{deb.name}" for deb in sorted(debs.glob("*.deb")) if "dbgsym" not in deb.name),
             'chroot "$1" sh /tmp/setup', f"download /tmp/core.img {part}/core.img",
             f"download /usr/lib/grub/i386-pc/boot.img {part}/boot.img",
             'rm "$1/tmp/setup" "$1/tmp/loader" "$1/tmp/core.img"']
    logged(["mmdebstrap", "--variant=apt", f"--include={','.join(packages)}", *settings,
            *(f"--customize-hook={hook}" for hook in hooks), *([f"--keyring={signed}"] if signed else []),
            suite, part / "root.ext2", mirror], BUILD / "log/vm-image.log", env=os.environ | {"LC_ALL": "C"})
    _file_system(part / "root.ext2")
    with open(part / "disk", "wb") as f:
        f.write(_boot_sector((part / "boot.img").read_bytes()))
        f.write((part / "core.img").read_bytes())
        if f.tell() > START:
            raise LabError(f"the boot loader has {f.tell()} bytes, expected at most {START}")
        f.truncate(SIZE)
    _put(part / "root.ext2", part / "disk", START)
    (part / "root.ext2").unlink()


def _file_system(path: Path) -> None:
    """Make the ext2 that needs no root to be written an ext4 of the disk's size."""
    os.truncate(path, SIZE - START)
    output(["tune2fs", "-L", "root", "-c", "0", "-O", "has_journal,extents,dir_index,uninit_bg", path])
    # It mends what these features ask for, and says so by its exit status.
    output(["sh", "-c", 'e2fsck -f -y "$1" || [ $? -eq 1 ]', "sh", path])
    output(["resize2fs", path])


def _put(source: Path, disk: Path, start: int) -> None:
    """Copy what a sparse file holds to a place of the disk."""
    with open(source, "rb") as ours, open(disk, "r+b") as to:
        while data := ours.read(1 << 20):
            if data != bytes(len(data)):
                to.seek(start + ours.tell() - len(data))
                to.write(data)


def _boot_sector(code: bytes) -> bytes:
    """GRUB's first sector, which loads what lies behind it, with a table of one partition that takes all the disk."""
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", START // SECTOR,
                        (SIZE - START) // SECTOR)
    return code[:440].ljust(446, b"\0") + entry.ljust(64, b"\0") + b"\x55\xaa"
