# SPDX-License-Identifier: GPL-2.0
"""QEMU's control socket: a pair of sockets, of which QEMU inherits one.

What is sent before QEMU runs waits for it there. Debian packages no QMP library for Python; QEMU's own
(qemu.qmp) is asynchronous and connects by itself, where a pair needs neither.
"""

import json
import socket
from collections.abc import Iterator
from typing import Any


class Qmp:
    """Our end. A command's answer is one of the messages that come; most commands need none."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""

    @staticmethod
    def arguments(theirs: socket.socket) -> list[str]:
        """QEMU's arguments for the other end, which it inherits."""
        return ["-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control"]

    def send(self, name: str, **arguments: object) -> None:
        self._sock.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")

    def messages(self, seconds: float) -> Iterator[dict[str, Any]]:
        """What comes next, once something comes; nothing if that takes too long. EOFError: QEMU has ended."""
        self._sock.settimeout(seconds)
        try:
            new = self._sock.recv(65536)
        except TimeoutError:
            return
        except ConnectionError:
            new = b""
        if not new:
            raise EOFError
        *lines, self._rest = (self._rest + new).split(b"\n")
        yield from map(json.loads, lines)
