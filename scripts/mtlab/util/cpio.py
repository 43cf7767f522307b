# SPDX-License-Identifier: GPL-2.0
"""Writes the "newc" cpio archives that the kernel unpacks as initramfs.

The same files always give the same bytes: no times, owners or inode numbers of the host. Archives
can be concatenated; a later one overrides.
"""

import stat
from collections.abc import Iterator
from pathlib import Path


class Archive:
    """Collects files, links, folders and device nodes; bytes() is the finished archive."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}

    def _add(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        name = name.strip("/")
        parent = name.rpartition("/")[0]
        if parent and parent not in self._entries:
            self.folder(parent)
        self._entries[name] = (mode, data, device)

    def folder(self, name: str) -> None:
        self._add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes | str, mode: int = 0o644) -> None:
        self._add(name, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def link(self, name: str, target: str) -> None:
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def node(self, name: str, major: int, minor: int) -> None:
        self._add(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def copy(self, source: Path, name: str) -> None:
        """A file or a folder with all that is in it, as they are on the host."""
        if source.is_symlink():
            self.link(name, str(source.readlink()))
        elif source.is_dir():
            self.folder(name)
            for entry in sorted(source.iterdir()):
                self.copy(entry, f"{name}/{entry.name}")
        else:
            self.file(name, source.read_bytes(), 0o755 if source.stat().st_mode & 0o100 else 0o644)

    def __contains__(self, name: str) -> bool:
        return name.strip("/") in self._entries

    def bytes(self) -> bytes:
        out = bytearray()
        everything = {**self._entries, "TRAILER!!!": (0, b"", (0, 0))}
        for number, (name, (mode, data, device)) in enumerate(everything.items(), 1):
            raw = name.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(raw), 0)
            out += b"070701" + b"".join(b"%08x" % f for f in fields) + raw
            out += b"\0" * (-len(out) % 4) + data
            out += b"\0" * (-len(out) % 4)
        return bytes(out)


def contents(path: Path) -> Iterator[tuple[str, int, int]]:
    """What an archive in a file holds: names, and where their data begins and how long it is."""
    with open(path, "rb") as f:
        while (header := f.read(110))[:6] == b"070701":
            size, length = int(header[54:62], 16), int(header[94:102], 16)
            name = f.read(length + -(110 + length) % 4).rstrip(b"\0").decode()
            yield name, f.tell(), size
            f.seek(size + -size % 4, 1)
