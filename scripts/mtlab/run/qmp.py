# SPDX-License-Identifier: GPL-2.0
"""QEMU's control socket: a pair of sockets, of which QEMU inherits one.

What is sent before QEMU runs waits for it there. Debian packages no QMP library for Python; QEMU's own
(qemu.qmp) is asynchronous and connects by itself, where a pair needs neither.
"""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any


class Qmp:
    """Our end. A command's answer is one of the messages that come; most commands need none."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""
        self._sent = 0

    @staticmethod
    def arguments(theirs: socket.socket) -> list[str]:
        """QEMU's arguments for the other end, which it inherits."""
        return ["-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control"]

    def send(self, name: str, **arguments: object) -> None:
        self._sent += 1
        line = {"execute": name, "arguments": arguments, "id": self._sent}
        self._sock.sendall(json.dumps(line).encode() + b"\n")

    def ask(self, seconds: float, name: str, **arguments: object) -> None:
        """Send a command and wait for its answer, as long as that does not take too long."""
        self.send(name, **arguments)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if any(message.get("id") == self._sent for message in self.messages(left)):
                return

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
