# SPDX-License-Identifier: GPL-2.0
"""`lab upstream`: the target as a series of patches for the kernel, checked, and built if that is asked for."""

import argparse
from pathlib import Path

from ..build import upstream


def _upstream(args: argparse.Namespace) -> int:
    version, patches = upstream.series(args.out)
    print(f"series: {len(patches)} patches for {version} in {args.out}", flush=True)
    said = {"checkpatch --strict": upstream.checkpatch(version, patches)}
    if args.build:
        said |= upstream.build(version, patches)
    for name, text in said.items():
        print(f"{name}: {text.strip() or 'clean'}", flush=True)
    if args.build:
        print(f"kernel: {upstream.KERNEL}")
    return int(any(text.strip() for text in said.values()))


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`upstream` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "upstream", help="make patches of the target for the kernel",
        description="Writes the target as patches for the newest kernel source that Debian packages, and checks them "
        "with that kernel's checkpatch --strict. The identity that git has for this checkout signs them. It sends "
        "nothing.")
    parser.add_argument("--out", type=Path, default=upstream.HOME / "series", metavar="DIR",
                        help="folder for the patches, in place of those that it has; default: build/upstream/series")
    parser.add_argument("--build", action="store_true",
                        help="build the kernel with them, as a module and built in, and check with sparse, W=1 and "
                        "kernel-doc; for `lab test --kernel upstream`")
    parser.set_defaults(function=_upstream)
