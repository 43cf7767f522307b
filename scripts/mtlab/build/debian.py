# SPDX-License-Identifier: GPL-2.0
"""Debian packages: the machine's own are installed, other suites' are only unpacked.

The private apt configuration lives in BUILD/apt. It takes the machine's mirror and its Acquire
settings (proxies), replaces the suite, and runs none of the machine's hooks. /etc stays as it is.
"""

import functools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Container, Sequence
from pathlib import Path

from ..util.base import BUILD, LabError, lock, logged, output, say, write_file

# What the machine itself must have, by what it is for.
PACKAGES = {
    "build": "gcc libc6-dev make patch bc kmod dpkg-dev xz-utils zstd libelf-dev flex bison",
    "emulator": "ninja-build pkg-config python3-venv python3-setuptools libglib2.0-dev libpixman-1-dev"
                " libfdt-dev libcap-ng-dev libattr1-dev zlib1g-dev qemu-system-data seabios",
    "full": "libslirp-dev libaio-dev liburing-dev",
    "image": "mmdebstrap uidmap genext2fs e2fsprogs qemu-utils openssh-client",
    "guest": "busybox-static bash fio nvme-cli zbd-utils dmsetup sysbench util-linux blktrace"
             " e2fsprogs xfsprogs btrfs-progs f2fs-tools libsqlite3-dev",
    "tool": "libzbd-dev libdevmapper-dev libisal-dev libblkid-dev uuid-dev",
    "install": "dkms",
    "deb": "build-essential debhelper dh-dkms lintian",
    "rpm": "rpm rpmlint",
    "figures": "python3-matplotlib",
    "scheduler": "python3-distributed",
    "report": "python3-jinja2",
    "test": "python3-pytest python3-pytest-xdist python3-pytest-timeout libcmocka-dev git chromium",
    "suites": "gawk gcc g++ make git udev bc pciutils",
    "xfstests": "acl attr automake libtool libtool-bin autoconf libacl1-dev libattr1-dev libaio-dev libcap-dev"
                " libgdbm-dev uuid-dev xfslibs-dev xfsprogs xfsdump e2fsprogs quota psmisc perl python3 dump",
    "recipes": "lvm2 cryptsetup-bin thin-provisioning-tools rsync util-linux e2fsprogs xfsprogs btrfs-progs systemd",
    "roots": "debootstrap",
    "fuzz": "clang llvm libclang-rt-dev",
    "coverage": "clang-19 llvm-19 libclang-rt-19-dev",
    "upstream": "git perl unifdef sparse",
    "lint": "shellcheck sparse clang-format mypy python3-venv git",
}
# Where the kernel is the newest that Debian has for its stable suite.
NEWEST = "trixie-backports"
# Where linux-source-5.10 is. Its lists lie apart: the day that it goes, all else still works.
OLD = "bullseye-security"
# Lists of sources only, of where a package is newest; apart, because they are large.
SOURCES = "sources"
NEWEST_SOURCES = (NEWEST, "sid", "experimental")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT = BUILD / "apt"
_there: set[str] = set()        # purposes for which nothing was missing


def codename() -> str:
    """The machine's Debian suite, such as bookworm."""
    release = Path("/etc/os-release")
    text = release.read_text() if release.exists() else ""
    found = re.search(r"^VERSION_CODENAME=(\w+)", text, re.M)
    if not found or not re.search(r"^ID=debian$", text, re.M):
        raise LabError("this is not Debian: the lab installs its packages on Debian 12 or 13 only")
    return found[1]


def missing(*purposes: str) -> list[str]:
    """Which packages for these purposes are not installed."""
    want = sorted({p for purpose in purposes for p in PACKAGES[purpose].split()})
    known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *want],
                           capture_output=True, text=True).stdout.split("\n")
    have = {line.split()[0] for line in known if line.endswith(" installed")}
    return [p for p in want if p not in have]


def ensure(*purposes: str) -> None:
    """Install what is missing for these purposes, or say which command does. What was there once is not asked again."""
    purposes = tuple(purpose for purpose in purposes if purpose not in _there)
    lack = missing(*purposes) if purposes else []
    if not lack:
        _there.update(purposes)
        return
    codename()
    say(f"missing Debian packages: {' '.join(lack)}")
    install = ["apt-get", "install", "-y", "--no-install-recommends", *lack]
    become: list[str] = []
    if os.geteuid():
        if not shutil.which("sudo"):
            raise LabError("run this as root first: " + " ".join(install))
        become = ["sudo"]
    archives = APT / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    env = ["env", "DEBIAN_FRONTEND=noninteractive"]
    with lock("apt-install"):
        options = ["-o", f"Dir::Cache::archives={archives}", "-o", "DPkg::Lock::Timeout=600"]
        try:
            logged([*become, *env, "apt-get", "-q", "update"], BUILD / "log/apt-update.log")
        except LabError as e:
            say(f"apt-get update failed, trying with the lists that are there: {str(e).splitlines()[-1]}")
        say("installing them")
        logged([*become, *env, *install[:1], "-q", *options, *install[1:]], BUILD / "log/apt-install.log")
    still = missing(*purposes)
    if still:
        raise LabError(f"apt-get installed, but these are still missing: {' '.join(still)}")


def newer_suite() -> str:
    """The suite for this machine that has kernel 6.12 and what else Debian 12 itself is too old for."""
    home = codename()
    return f"{home}-backports" if home == "bookworm" else home


def entries(etc: Path) -> list[tuple[str, str, str]]:
    """A machine's binary archive entries: (URI, suite, keyring), in both of apt's formats."""
    found: list[tuple[str, str, str]] = []
    for path in [etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))]:
        for line in path.read_text().splitlines() if path.exists() else []:
            m = re.match(r"deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s", line)
            if m:
                key = re.search(r"signed-by=(\S+)", m[1] or "")
                found.append((m[2], m[3], key[1] if key else ""))
    for path in sorted(etc.glob("sources.list.d/*.sources")):
        text = re.sub(r"^#.*\n?", "", path.read_text(), flags=re.M)
        for stanza in re.split(r"\n\s*\n", text):
            fields = {k.lower(): v.strip() for k, v in
                      re.findall(r"^([\w-]+):[ \t]*((?:.*)(?:\n[ \t].*)*)", stanza, re.M)}
            if "deb" not in fields.get("types", "").split() or fields.get("enabled", "") == "no":
                continue
            key_field = fields.get("signed-by", "")
            for uri in fields.get("uris", "").split():
                for suite in fields.get("suites", "").split():
                    found.append((uri, suite, key_field if key_field.startswith("/") else ""))
    return found


def mirror() -> tuple[str, str]:
    """URL and keyring of the mirror that holds the machine's own suite."""
    suite = codename()
    for uri, name, key in entries(Path("/etc/apt")):
        if name in (suite, "stable") and "security" not in uri:
            return uri, key or (str(KEYRING) if KEYRING.exists() else "")
    raise LabError(f"no archive entry for {suite} in /etc/apt: which mirror has Debian's packages?")


def _security(mirror: str) -> str:
    """URL of the security archive: the machine's own, or what is beside its mirror."""
    found = [uri for uri, name, _ in entries(Path("/etc/apt")) if name.endswith("-security")]
    return found[0] if found else mirror.rstrip("/") + "-security"


def _usual() -> set[str]:
    """The suites whose lists lie together."""
    return {"bookworm", newer_suite(), "trixie", NEWEST}


def _private(apart: str = "") -> dict[str, str]:
    """Environment in which apt sees only our suites, or only that one; fetches their lists when they are not there."""
    home = APT / ("old" if apart == OLD else apart)
    config = home / "apt.conf"
    env = dict(os.environ, APT_CONFIG=str(config), LC_ALL="C")
    with lock("apt"):
        uri, key = mirror()
        signed = f"[signed-by={key}] " if key else ""
        wanted = {"deb": _usual(), "deb-src": {codename(), "trixie"}}
        if apart == SOURCES:
            wanted = {"deb-src": set(NEWEST_SOURCES)}
        elif apart:
            uri, wanted = _security(uri) if apart == OLD else uri, {"deb": {apart}}
        lists = "".join(f"{kind} {signed}{uri} {suite} main\n"
                        for kind, suites in wanted.items() for suite in sorted(suites))
        ready = home / "ready"
        if ready.exists() and ready.read_text() == lists:
            return env
        write_file(home / "sources.list", lists)
        for folder in ("lists/partial", "archives/partial"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        write_file(home / "status", "")       # what is installed here is no candidate
        machine = [x for x in output(["apt-config", "dump"]).splitlines()
                   if x.startswith("Acquire::") and not x.startswith("Acquire::IndexTargets")]
        write_file(config, "\n".join(machine) + f"""
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "{home}/lists";
Dir::State::status "{home}/status";
Dir::Cache::archives "{home}/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Sandbox::User "";
Acquire::Languages "none";
""")
        say(f"reading the package lists of {uri}")
        try:
            logged(["apt-get", "-q", "--error-on=any", "update"], BUILD / "log/apt-private.log", env=env)
        except LabError as e:
            raise LabError(f"{uri} cannot be read (is there a network?)\n{e}") from None
        write_file(ready, lists)
    return env


def candidates(package: str, suites: Container[str]) -> list[dict[str, str]]:
    """The stanzas of a package in these of our suites, newest first, as apt-cache prints them."""
    found = []
    for line in output(["apt-cache", "madison", package], env=_private()).splitlines():
        _, version, place = (x.strip() for x in line.split("|"))
        if place.endswith(" Packages") and place.split()[1].split("/")[0] in suites:
            found.append(stanza(f"{package}={version}"))
    return found


def stanza(package: str) -> dict[str, str]:
    """What apt-cache says of package=version."""
    text = output(["apt-cache", "show", package], env=_private()).split("\n\n")[0]
    return dict(re.findall(r"^([\w-]+): (.*)$", text, re.M))


def download(package: str, folder: Path) -> Path:
    """Fetch one .deb (package, package=version or package/suite) into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*.deb"))
    env = _private(OLD if package.endswith(f"/{OLD}") else "")
    output(["apt-get", "-q", "download", package], env=env, cwd=folder)
    name = re.split("[=/]", package)[0]
    return next(iter(set(folder.glob(f"{name}_*.deb")) - before or set(folder.glob(f"{name}_*.deb"))))


def unpack(package: str, folder: Path) -> None:
    """Fetch one .deb and unpack its files into a folder; nothing is installed."""
    temporary = APT / "download" / f"{os.getpid()}-{threading.get_ident()}"
    try:
        deb = download(package, temporary)
        folder.mkdir(parents=True, exist_ok=True)
        output(["dpkg-deb", "-x", deb, folder])
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def closure(packages: Sequence[str], suite: str) -> list[str]:
    """These packages of a suite and all that they depend on, as package=version."""
    env = _private("" if suite in _usual() else suite)
    text = output(["apt-get", "-q", "--simulate", "--no-install-recommends", "-o", f"APT::Default-Release={suite}",
                   "install", *packages], env=env)
    return [f"{name}={version}" for name, version in re.findall(r"^Inst (\S+) \((\S+)", text, re.M)]


def unpack_all(packages: Sequence[str], suite: str, folder: Path) -> None:
    """Fetch many of a suite, as closure() names them, and unpack their files into a folder; nothing is installed."""
    temporary = APT / "download" / f"{os.getpid()}-{threading.get_ident()}"
    temporary.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        env = _private("" if suite in _usual() else suite)
        logged(["apt-get", "-q", "download", *packages], BUILD / "log/apt-download.log", env=env, cwd=temporary)
        for deb in sorted(temporary.glob("*.deb")):
            output(["dpkg-deb", "-x", deb, folder])
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def source(package: str, folder: Path, apart: str = "") -> str:
    """Fetch a source package and unpack it, Debian's patches applied; returns its version."""
    temporary = APT / "download" / f"{os.getpid()}-{threading.get_ident()}"
    temporary.mkdir(parents=True, exist_ok=True)
    try:
        output(["apt-get", "-q", "source", "--download-only", package], env=_private(apart), cwd=temporary)
        dsc = next(temporary.glob("*.dsc"))
        output(["dpkg-source", "--no-check", "-x", dsc, folder])
        found = re.search(r"^Version: (.*)$", dsc.read_text(errors="replace"), re.M)
        return found[1] if found else dsc.stem
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def newest_source(package: str, folder: Path) -> str:
    """Fetch the newest source package that the archive lists and still has, and unpack it; returns its version.

    A mirror's index may name a version whose files are not there: then the next one is taken.
    """
    text = output(["apt-cache", "showsrc", "--only-source", package], env=_private(SOURCES))
    newest = sorted(set(re.findall(r"^Version: (\S+)", text, re.M)), key=functools.cmp_to_key(_compare), reverse=True)
    for version in newest:
        try:
            return source(f"{package}={version}", folder, SOURCES)
        except LabError:
            say(f"{package} {version} is listed, but its source cannot be fetched")
            shutil.rmtree(folder, ignore_errors=True)
    raise LabError(f"no source of {package} can be fetched, of {' '.join(newest) or 'no version'}")


def _compare(a: str, b: str) -> int:
    """Which of two versions of Debian is the newer one, as functools.cmp_to_key() wants it."""
    newer = subprocess.run(["dpkg", "--compare-versions", a, "gt", b]).returncode == 0
    return 1 if newer else -int(a != b)
