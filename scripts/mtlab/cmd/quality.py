# SPDX-License-Identifier: GPL-2.0
"""`lab test`, `lab check` and `lab lint`: everything that says whether the project is well.

`lab check` is lint and those tests that start no emulator: the first thing to run after a change.

Lint keeps to the project's own files: kernel style (checkpatch, sparse) for target/ and the guest's C,
QEMU's own checkpatch for emulator/, shellcheck, ruff, mypy. A file that a checker found clean is not
checked again until the file, the checker or its options change.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..build import debian, emulator, guest, kernels, target
from ..util.base import (
    BUILD,
    ROOT,
    LabError,
    cores,
    digest,
    digest_files,
    fresh_folder,
    guests_at_once,
    output,
    say,
    write_file,
)
from . import imports, layers, prose

PYTHON = "/usr/bin/python3"
# Advice of checkpatch that names helpers which programs do not have.
KERNEL_ONLY = "STRCPY,ARRAY_SIZE,PREFER_DEFINED_ATTRIBUTE_MACRO,EMBEDDED_FUNCTION_NAME,SPLIT_STRING"
# And what the module's headers say to the host alone: see lib/pure.h.
HOST_ONLY = "PREFER_KERNEL_TYPES"
LINT = BUILD / "lint"


def _pytest(jobs: int, *more: str, **env: str) -> int:
    """Run the project's tests side by side; returns pytest's exit status."""
    env = os.environ | {"MTFTL_BUILD": str(BUILD), "PYTHONDONTWRITEBYTECODE": "1"} | env
    command = [PYTHON, "-m", "pytest", f"--numprocesses={jobs}", "--dist=loadgroup", *more]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


def _test(args: argparse.Namespace) -> int:
    kernels.check(args.kernel)
    debian.ensure("build", "emulator", "guest", "tool", "figures", "report", "test")
    guest.tools()
    for series in kernels.SERIES:
        guest.modules(kernels.get(series))
    return _pytest(args.jobs, f"--kernel={args.kernel}", *(["-k", args.k] if args.k else []),
                   *(["--night"] if args.night else []),
                   *([] if args.shuffle is None else [f"--shuffle={args.shuffle}"]), *args.paths,
                   MTFTL_QEMU=str(emulator.build()))


def _check(args: argparse.Namespace) -> int:
    """Lint, and all tests that start no emulator. One that starts it unasked fails: there is none."""
    debian.ensure("build", "guest", "tool", "figures", "report", "test")
    linted = _lint(args)
    return _pytest(cores(), "--no-guest", MTFTL_QEMU="none", **{emulator.FORBIDDEN: "1"}) or linted


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
    return not {"tool", "simulator", "tests", "guest"}.isdisjoint(path.relative_to(ROOT).parts)


def _shell_scripts(*kinds: bytes) -> list[Path]:
    """Files whose first line names one of these shells."""
    return [p for p in _files() if p.is_file() and p.read_bytes()[:2] == b"#!"
            and p.read_bytes().split(b"\n")[0].split(b"/")[-1] in kinds]


def _shellcheck() -> str:
    """What shellcheck says of our scripts, and of the tests that run in a guest.

    Those are of bash, and split words on purpose (SC2046). guest.sh, which they source, reads some of their variables
    (SC1091, SC2034).
    """
    shellcheck = shutil.which("shellcheck") or "shellcheck"
    said = check_files([shellcheck, "-s", "sh", "-e", "SC1091"], Path(shellcheck),
                       _shell_scripts(b"sh", b"busybox sh"))
    return said + check_files([shellcheck, "-s", "bash", "-S", "warning", "-e", "SC1091,SC2034,SC2046"],
                              Path(shellcheck), [*_shell_scripts(b"bash"), *_files("*guest.sh")])


def _stamp(*inputs: str | Path) -> Path:
    """Exists if a check of these inputs found nothing."""
    return LINT / "clean" / digest(*inputs)


def check_files(command: Sequence[str | Path], checker: Path, files: Sequence[Path]) -> str:
    """Runs a checker on the files that it has not found clean before; returns its complaints."""
    options = [str(word) for word in command]
    stamps = {path: _stamp(checker, *options, str(path.relative_to(ROOT)), path) for path in files}
    unknown = [path for path, stamp in stamps.items() if not stamp.exists()]
    if not unknown:
        return ""
    # checkpatch leaves a file where it runs.
    done = subprocess.run([*command, *unknown], cwd=LINT, capture_output=True, text=True)
    if done.returncode:
        return done.stdout + done.stderr
    for path in unknown:
        write_file(stamps[path], "")
    return ""


def _sparse() -> str:
    """What sparse and W=1 say about the module."""
    kernel = kernels.get(kernels.DEFAULT)
    sources = [p for p in _files("target") if p.is_file() and not _is_user_space(p) and "packaging" not in p.parts]
    contents = {str(p.relative_to(ROOT)): p.read_bytes() for p in sources}
    stamp = _stamp("sparse", str(kernel.headers), digest_files(contents))
    if stamp.exists():
        return ""
    # Several checkouts may share the build folder.
    with tempfile.TemporaryDirectory(dir=LINT) as folder:
        copy = Path(folder) / "target"
        shutil.copytree(target.SOURCE, copy)
        done = subprocess.run(["make", "-s", "-C", str(kernel.headers), f"M={copy}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                               "C=1", "W=1", "modules"], capture_output=True, text=True)
    said = [line.replace(str(copy), "target") for line in (done.stdout + done.stderr).splitlines()
            if str(copy) in line]
    if not said and not done.returncode:
        write_file(stamp, "")
    return "\n".join(said) if said or not done.returncode else done.stderr


def _lint(_args: argparse.Namespace) -> int:
    debian.ensure("build", "lint")
    LINT.mkdir(parents=True, exist_ok=True)
    failed = []

    def judge(name: str, said: str) -> None:
        print(f"{name}: {'clean' if not said.strip() else ''}", flush=True)
        if said.strip():
            failed.append(name)
            print(said.strip())

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return done.stdout + done.stderr if done.returncode else ""

    def checkpatch(script: Path, files: Sequence[Path], *options: str) -> str:
        return check_files(["perl", script, "--no-tree", "--no-summary", "--terse", *options, "-f"], script, files)

    kernel, style = _checkpatch(), ("--max-line-length=100", "--ignore", "SPDX_LICENSE_TAG")
    c_files = _files("target/*.[ch]", "scripts/*.[ch]")
    module = [p for p in c_files if not _is_user_space(p)]
    judge("checkpatch", checkpatch(kernel, module, *style, "--strict", "--ignore", HOST_ONLY))
    judge("checkpatch, user space",
          checkpatch(kernel, [*filter(_is_user_space, c_files)], *style, "--ignore", KERNEL_ONLY))
    judge("sparse and W=1", _sparse())
    judge("layers", layers.complaints())
    judge("imports", imports.complaints())
    judge("prose", prose.complaints())
    judge("QEMU's checkpatch", checkpatch(emulator.pristine() / "scripts/checkpatch.pl",
                                          _files("emulator/hw/*.[ch]", "emulator/accel/*.[ch]")))
    judge("shellcheck", _shellcheck())
    judge("ruff", run(_ruff(), "check", "-q", "--no-cache", "--output-format", "concise", "."))
    judge("mypy", run("mypy", f"--cache-dir={LINT / 'mypy' / digest(str(ROOT))}"))
    print(f"lint: {', '.join(failed) or 'clean'}", flush=True)
    return int(bool(failed))


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
    """`test`, `check`, `lint` and `install` on the command line of scripts/lab."""
    test = commands.add_parser("test", help="run the tests of the project")
    test.add_argument("-k", default="", metavar="NAME", help="only tests whose name contains it")
    test.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|kcsan|upstream|PATH",
                      help="kernel of all guests that would run the default one; default %(default)s")
    test.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                      help="tests side by side; default: the host's cores, as far as its memory goes")
    test.add_argument("--night", action="store_true", help="also the tests that take minutes, as `make night` does")
    test.add_argument("--shuffle", type=int, metavar="SEED",
                      help="run in an order that this seed chooses, not the longest first")
    test.add_argument("paths", nargs="*", metavar="PATH", help="only the tests in these files or folders")
    test.set_defaults(function=_test)
    check = commands.add_parser("check", help="lint, and the tests that need no guest")
    check.set_defaults(function=_check)
    lint = commands.add_parser("lint", help="check style, types, layers and prose")
    lint.set_defaults(function=_lint)
    install = commands.add_parser("install", help="install the module (DKMS) and the tool on this machine")
    install.set_defaults(function=_install)
