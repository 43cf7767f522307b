# SPDX-License-Identifier: GPL-2.0
"""`lab worker`: lend this machine to a scheduler. It becomes Dask's own worker, with what the lab needs of one."""

import argparse
import os
import sys

from ..build import debian
from ..run import cluster
from ..util.base import BUILD, ROOT, guests_at_once, say


def command(address: str, jobs: int, more: list[str]) -> list[str]:
    """The command line of Dask's worker."""
    # Guests are processes of their own: what Dask measures of its memory says nothing.
    return [sys.executable, "-B", "-m", "distributed.cli.dask_worker", address, "--nworkers", "1", "--nthreads",
            str(jobs), "--resources", f"{cluster.resource()}={jobs}", "--memory-limit", "0", "--no-dashboard",
            "--local-directory", str(BUILD / "worker"), *more]


def _worker(args: argparse.Namespace) -> int:
    cluster.check(args.address)
    debian.ensure("scheduler", "build", "emulator", "guest", "tool", "figures")
    say(f"worker of build {cluster.resource().removeprefix(cluster.RESOURCE)}, {args.jobs} runs side by side")
    (BUILD / "worker").mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]))
    sys.stdout.flush()
    line = command(args.address, args.jobs, args.more)
    os.execve(line[0], line, os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`worker` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "worker", help="lend this machine to a Dask scheduler for runs of the lab",
        description="Does runs for `lab exp`, `lab cuts` and `lab torture` that are started with --scheduler ADDRESS, "
        "from the same sources, until it is ended. docs/lab/machines.md says how to start a scheduler.",
        usage="lab worker [--jobs N] ADDRESS [-- OPTIONS of dask-worker]")
    parser.add_argument("address", metavar="ADDRESS", help="the scheduler's: tls://HOST:PORT, or tcp://HOST:PORT in a "
                        "private network")
    parser.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                        help="runs side by side; default: the host's cores, as far as its memory goes")
    parser.add_argument("more", nargs="*", metavar="OPTION", help="after `--`: more for dask-worker")
    parser.set_defaults(function=_worker)
