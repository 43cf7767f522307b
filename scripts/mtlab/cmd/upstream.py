# SPDX-License-Identifier: GPL-2.0
"""`lab upstream`: the target as patches for the kernel, or the emulator as patches for QEMU; checked, and built."""

import argparse
from pathlib import Path

from ..build import qemuseries, upstream
from ..util.base import LabError

NEWEST, LAB = "newest", "lab"


def _upstream(args: argparse.Namespace) -> int:
    return _qemu(args) if args.qemu else _kernel(args)


def _kernel(args: argparse.Namespace) -> int:
    out = args.out or upstream.HOME / "series"
    version, patches = upstream.series(out)
    print(f"series: {len(patches)} patches for {version} in {out}", flush=True)
    said = {"checkpatch --strict": upstream.checkpatch(version, patches)}
    if args.build:
        said |= upstream.build(version, patches)
    for name, text in said.items():
        print(f"{name}: {text.strip() or 'clean'}", flush=True)
    if args.build:
        print(f"kernel: {upstream.KERNEL}")
    return int(any(text.strip() for text in said.values()))


def _tree(name: str) -> qemuseries.Tree:
    if name == LAB:
        return qemuseries.lab_tree()
    if name == NEWEST:
        return qemuseries.newest_tree()
    if not (Path(name) / "VERSION").exists():
        raise LabError(f"--qemu {name}: expected {LAB}, {NEWEST} or a folder with QEMU's source")
    return qemuseries.Tree(Path(name).resolve())


def _qemu(args: argparse.Namespace) -> int:
    tree = _tree(args.qemu)
    out = args.out or qemuseries.HOME / f"qemu-{tree.version}"
    patches = qemuseries.series(tree, out)
    failed = False
    for name in qemuseries.NAMES:
        new, known = qemuseries.checkpatch(tree, patches[name])
        print(f"{name}, for QEMU {tree.version}: patches: {len(patches[name])}, in {out / name}; checkpatch: "
              f"{new or 'no error'}, {known} known warnings", flush=True)
        failed |= bool(new)
    if args.build:
        said = qemuseries.build(tree, patches)
        print(said, end="")
        failed |= "not ok" in said
    return int(failed)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`upstream` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "upstream", help="make patches of the target for the kernel, or of the emulator for QEMU",
        description="Writes the target as patches for the newest kernel source that Debian packages, and checks them "
        "with that kernel's checkpatch --strict. With --qemu it writes the flash drive and lockstep time as two series "
        "of patches for QEMU. The identity that git has for this checkout signs them. It sends nothing.")
    parser.add_argument("--qemu", metavar=f"{LAB}|{NEWEST}|DIR",
                        help="patches for QEMU: the release that the lab builds, the newest one that Debian packages, "
                        "or a folder with QEMU's source")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="folder for the patches, in place of those that it has; default: build/upstream/series, "
                        "or build/upstream/qemu-VERSION")
    parser.add_argument("--build", action="store_true",
                        help="build the kernel with them, as a module and built in, and check with sparse, W=1 and "
                        "kernel-doc; for `lab test --kernel upstream`. With --qemu: build QEMU, and run the qtests")
    parser.set_defaults(function=_upstream)
