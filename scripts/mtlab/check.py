# SPDX-License-Identifier: GPL-2.0
"""`lab test` and `lab lint`: everything that says whether the project is well.

Lint keeps to the project's own files: kernel style (checkpatch, sparse) for target/ and the guest's C,
QEMU's own checkpatch for emulator/, shellcheck, ruff, mypy.
"""

import argparse
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import debian, emulator, guest, house, kernels, target
from .base import BUILD, ROOT, LabError, fresh_folder, guests_at_once, output, say

PYTHON = "/usr/bin/python3"
# Advice of checkpatch that names helpers which programs do not have.
KERNEL_ONLY = "STRCPY,ARRAY_SIZE,PREFER_DEFINED_ATTRIBUTE_MACRO,EMBEDDED_FUNCTION_NAME,SPLIT_STRING"
# The one place where kernel versions are told apart.
VERSIONS = "LINUX_VERSION_CODE,CONSTANT_COMPARISON"


def _test(args: argparse.Namespace) -> int:
    kernels.check(args.kernel)
    debian.ensure("build", "emulator", "guest", "tool", "figures", "test")
    guest.tools()
    for series in kernels.SERIES:
        guest.modules(kernels.get(series))
    env = dict(os.environ, MTFTL_QEMU=str(emulator.build()), MTFTL_BUILD=str(BUILD), PYTHONDONTWRITEBYTECODE="1")
    command = [PYTHON, "-m", "pytest", f"--kernel={args.kernel}", *(["-k", args.k] if args.k else []),
               *([] if args.shuffle is None else [f"--shuffle={args.shuffle}"]),
               f"--numprocesses={args.jobs}", "--dist=loadgroup", *args.paths]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


def _checkpatch() -> Path:
    """The kernel's checkpatch.pl, from Debian's kernel source package."""
    folder = BUILD / "checkpatch"
    if not folder.exists():
        say("fetching the kernel's checkpatch")
        with fresh_folder(folder) as part:
            deb = debian.download(f"linux-source-6.12/{debian.newer_suite()}", part)
            wanted = [f"linux-source-6.12/scripts/{f}"
                      for f in ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")]
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as package, \
                    subprocess.Popen(["tar", "-xO", "./usr/src/linux-source-6.12.tar.xz"], stdin=package.stdout,
                                     stdout=subprocess.PIPE) as inner:
                output(["tar", "-xJ", "-C", part, "--strip-components=2", *wanted], stdin=inner.stdout)
            deb.unlink()
    return folder / "checkpatch.pl"


def _ruff() -> Path:
    """ruff, which Debian 12 does not have: in a folder of its own, from Python's package index."""
    ruff = BUILD / "lint-venv/bin/ruff"
    if not ruff.exists():
        say("fetching ruff")
        with fresh_folder(BUILD / "lint-venv") as part:
            output([PYTHON, "-m", "venv", part])
            output([part / "bin/python", "-m", "pip", "install", "-q", "ruff>=0.6,<1"])
    return ruff


def _files(*patterns: str) -> list[Path]:
    """The project's files of these patterns, as git knows them."""
    listed = output(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "--", *patterns])
    return [ROOT / name for name in listed.splitlines()]


def _is_user_space(path: Path) -> bool:
    return "tool" in path.parts or "simulator" in path.parts or "tests" in path.parts or "guest" in path.parts


def _shell_scripts() -> list[Path]:
    return [p for p in _files() if p.is_file() and p.read_bytes()[:2] == b"#!"
            and p.read_bytes().split(b"\n")[0].split(b"/")[-1] in (b"sh", b"bash", b"busybox sh")]


def _sparse() -> str:
    """What sparse and W=1 say about the module."""
    kernel = kernels.get(kernels.DEFAULT)
    folder = BUILD / "lint" / "target"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(target.SOURCE, folder)
    done = subprocess.run(["make", "-s", "-C", str(kernel.headers), f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                           "C=1", "W=1", "modules"], capture_output=True, text=True)
    said = [line.replace(str(folder), "target") for line in (done.stdout + done.stderr).splitlines()
            if str(folder) in line]
    return "\n".join(said) if said or not done.returncode else done.stderr


def _lint(_args: argparse.Namespace) -> int:
    debian.ensure("build", "lint")
    failed = []

    def judge(name: str, command: Sequence[str | Path] | None, said: str = "") -> None:
        if command is not None:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            said = done.stdout + done.stderr if done.returncode else ""
        print(f"{name}: {'clean' if not said.strip() else ''}", flush=True)
        if said.strip():
            failed.append(name)
            print(said.strip())

    checkpatch: list[str | Path] = ["perl", _checkpatch(), "--no-tree", "--no-summary", "--terse",
                                    "--max-line-length=100", "--ignore", "SPDX_LICENSE_TAG", "-f"]
    c_files = _files("target/*.[ch]", "scripts/*.[ch]")
    compat = [p for p in c_files if p.name in ("compat.h", "meta.h")]
    module = [p for p in c_files if not _is_user_space(p) and p not in compat]
    judge("checkpatch", [*checkpatch, *module])
    if compat:
        judge("checkpatch, kernel versions", [*checkpatch, "--ignore", VERSIONS, *compat])
    judge("checkpatch, user space", [*checkpatch, "--ignore", KERNEL_ONLY, *filter(_is_user_space, c_files)])
    judge("sparse and W=1", None, _sparse())
    judge("house", None, house.complaints())
    qemu_c = _files("emulator/hw/*.[ch]", "emulator/accel/*.[ch]")
    if qemu_c:
        judge("QEMU's checkpatch", ["perl", emulator.pristine() / "scripts/checkpatch.pl", "--no-tree", "--terse",
                                    "--no-summary", "-f", *qemu_c])
    scripts = _shell_scripts()
    if scripts:
        judge("shellcheck", ["shellcheck", "-s", "sh", "-e", "SC1091", *scripts])
    judge("ruff", [_ruff(), "check", "-q", "--no-cache", "--output-format", "concise", "."])
    judge("mypy", ["mypy", "--no-incremental", "--cache-dir=/dev/null"])
    if failed:
        raise LabError(f"lint: {', '.join(failed)}")
    print("lint: clean")
    return 0


def _install(_args: argparse.Namespace) -> int:
    """The module and the tool on this machine; target/Makefile knows how."""
    if os.geteuid():
        raise LabError("installing needs root: sudo make install")
    debian.ensure("build", "tool", "install")
    release = os.uname().release
    if not Path(f"/lib/modules/{release}/build").exists():
        raise LabError(f"the headers of the running kernel are missing: apt-get install linux-headers-{release}")
    return subprocess.run(["make", "-C", target.SOURCE, "install"]).returncode


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`test`, `lint` and `install` on the command line of scripts/lab."""
    test = commands.add_parser("test", help="run the tests of the project")
    test.add_argument("-k", default="", metavar="NAME", help="only tests whose name contains it")
    test.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|kcsan|PATH",
                      help="of the guests that would run the default one")
    test.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                      help="tests side by side; default: the host's cores, as far as its memory goes")
    test.add_argument("--shuffle", type=int, metavar="SEED", help="in an order of this seed, not the longest first")
    test.add_argument("paths", nargs="*", metavar="PATH")
    test.set_defaults(function=_test)
    lint = commands.add_parser("lint", help="check style and types")
    lint.set_defaults(function=_lint)
    install = commands.add_parser("install", help="install the module (DKMS) and the tool on this machine")
    install.set_defaults(function=_install)
