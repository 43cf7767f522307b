# SPDX-License-Identifier: GPL-2.0
"""How the lab ends early: signals unwind like Ctrl-C, and one thread can end the work of all."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_stop = threading.Event()
_here = threading.local()       # .asked: of a thread whose guests something else may end


def stop_all() -> None:
    """End the guests of all threads; their runs unwind with KeyboardInterrupt."""
    _stop.set()


def pulse() -> None:
    """A thread that waits for a guest calls this now and then: stop_all() ends the wait."""
    if _stop.is_set() or getattr(_here, "asked", _stop.is_set)():
        raise KeyboardInterrupt


@contextmanager
def when(asked: Callable[[], bool]) -> Iterator[None]:
    """This thread's guests end once asked() is true."""
    _here.asked = asked
    try:
        yield
    finally:
        del _here.asked


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def end_cleanly_on_signals() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C: guests end, folders go."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
