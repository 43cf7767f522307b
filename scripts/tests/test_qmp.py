# SPDX-License-Identifier: GPL-2.0
"""QEMU's control socket, with the test in QEMU's place."""

import json
import socket

import pytest
from mtlab.run.qmp import Qmp


def test_messages_come_whole() -> None:
    """However the socket cuts them; nothing in time is nothing, and the end is said."""
    ours, theirs = socket.socketpair()
    with ours:
        qmp = Qmp(ours)
        assert list(qmp.messages(0.01)) == []
        with theirs:
            theirs.sendall(b'{"return": {}}\n{"event": "ST')
            assert list(qmp.messages(1)) == [{"return": {}}]
            theirs.sendall(b'OP"}\n')
            assert list(qmp.messages(1)) == [{"event": "STOP"}]
        with pytest.raises(EOFError):
            list(qmp.messages(1))


def test_what_is_sent_before_waits() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Qmp(ours).send("migrate", uri="file:x")
        assert json.loads(theirs.recv(65536)) == {"execute": "migrate", "arguments": {"uri": "file:x"}, "id": 1}


def test_an_answer_is_the_commands_own() -> None:
    """Answers to earlier commands, and events, are not taken for it: what follows them is read, too."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        qmp = Qmp(ours)
        qmp.send("cont")
        theirs.sendall(b'{"return": {}, "id": 1}\n{"event": "STOP"}\n')
        qmp.ask(0.05, "stop")                   # no answer comes
        assert list(qmp.messages(0.01)) == []
        theirs.sendall(b'{"return": {}, "id": 3}\n')
        qmp.ask(60, "stop")
