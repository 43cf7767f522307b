# SPDX-License-Identifier: GPL-2.0
"""What workers do in test_cluster.py. Each has its name in MTFTL_TEST_WORKER; a worker "dies" in the call it has."""

import argparse
import hashlib
import os
import time
from functools import partial
from pathlib import Path

from mtlab.build.parts import part
from mtlab.cmd import cuts, torture
from mtlab.util import stop
from mtlab.util.base import LabError, digest
from mtlab.util.pool import Far, Job

SIZE = 1 << 20
PATIENCE = 600              # seconds: for what comes within one on a free machine


def me() -> str:
    """The worker's name."""
    return os.environ.get("MTFTL_TEST_WORKER", "")


@part
def data(place: Path) -> Path:
    """A file that only the client can make."""
    if me():
        raise LabError("it is not made here")
    path = place / "made" / "data"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(i % 251 for i in range(SIZE)))
    return path


def inputs(place: Path, number: int, odd_one: str = "-") -> str:
    """What a call is a function of; odd_one has another firmware."""
    return digest(data(place), str(number), "other" if me() == odd_one else "")


def work(place: Path, number: int) -> str:
    """A digest, after a while if the worker is slow."""
    (place / f"{number}-{me()}").touch()
    while me().startswith("dies") or (me() and (place / "hold").exists()):
        time.sleep(0.05)                    # until it is killed, or may go on
    for _ in range(40 if me() == "slow" else 1):
        found = hashlib.sha256(data(place).read_bytes() + str(number).encode()).hexdigest()
    return found


def name_of_it(place: Path, number: int) -> str:
    """No function of its inputs."""
    return f"{number} by {me()}"


def fails(place: Path, number: int) -> str:
    raise LabError(f"{number}: as asked")


def until_ended(place: Path, number: int) -> str:
    """As a guest does that would go on for ever."""
    (place / f"{number}-begun").touch()
    try:
        while True:
            stop.pulse()
            time.sleep(0.02)
    finally:
        (place / f"{number}-ended").touch()


def job(place: Path, number: int, what=work, odd_one: str = "-", wanted=lambda: True) -> Job[str]:
    """A call that this machine or another one does."""
    asked = partial(inputs, place, number, odd_one)
    call = partial(what, place, number)
    return Job(f"call {number}", call, number, Far(asked(), asked, call, call, str, wanted))


def boot(seed: int, cuts: int, args: argparse.Namespace) -> torture.Boot:
    """Of torture; the third finds something."""
    return torture.Boot(seed, seed == 3, {"cuts": cuts}, "lost" if seed == 3 else "", 2.0, "", 1.5)


def cuts_of(seed: int, args: argparse.Namespace) -> cuts.Outcome:
    return cuts.Outcome(seed, {}, {"cuts": args.cuts, "processor": 1.0}, 0, 0, 0, "", 2.0)


def inputs_of(seed: int, *more: object) -> str:
    """Of a boot."""
    return digest(f"boot {seed}")


def wait_for(path: Path, pattern: str) -> None:
    """Until there is such a file."""
    end = time.monotonic() + PATIENCE
    while not any(path.glob(pattern)):
        assert time.monotonic() < end, pattern
        time.sleep(0.02)
