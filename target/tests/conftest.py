# SPDX-License-Identifier: GPL-2.0
"""What the target's tests share; lets them import what lies beside them; and finds those that are scripts (guest/)."""

import functools
import sys
from pathlib import Path

import pytest
from mtlab.build import debian, guest, kernels, sourcekernel, target
from mtlab.run import collect
from mtlab.util.base import BUILD, fresh_folder, lock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def pytest_collect_file(file_path, parent):
    """Each script of guest/ is a test."""
    return collect.collect(file_path, HERE / "guest", parent)


@pytest.fixture
def run_script(request, lab_run, helpers) -> collect.ScriptRun:
    """Runs guest/NAME.sh as its header says: run_script("NAME", WORD..., OPTION=VALUE...)."""
    return functools.partial(collect.run, HERE / "guest", request, lab_run, helpers)


@pytest.fixture
def words() -> list[str]:
    """Arguments of a script that has no cases."""
    return []


@pytest.fixture
def options() -> dict[str, str]:
    """Options of a script that runs on one kernel."""
    return {}


@pytest.fixture(scope="session")
def helpers() -> list[Path]:
    """To be pushed: what scripts source (guest.sh), and the programs that they call."""
    return [HERE / "guest.sh", *(guest.program(name, HERE) for name in ("blocks", "pty"))]


@pytest.fixture(scope="session")
def meanwhile() -> Path:
    """To be pushed: the library that lets something happen between two of the tool's steps."""
    return guest.program("meanwhile", HERE, ("-D_GNU_SOURCE", "-shared", "-fPIC"))


def _unpacked(package: str) -> Path:
    """A folder with what a package of Debian 12 has; it is not installed."""
    folder = BUILD / "unpacked" / package
    with lock(f"unpacked-{package}"):
        if not folder.exists():
            with fresh_folder(folder) as part:
                debian.unpack(f"{package}/bookworm", part)
    return folder


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus's own checker of metrics and alerts."""
    return _unpacked("prometheus") / "usr/bin/promtool"


# What a script's header may need.

def _with_kprobes(pytestconfig, name: str, folder: Path) -> list[Path]:
    kernel = pytestconfig.getoption("--kernel")
    if kernel in sourcekernel.DEBUG:
        pytest.skip("the debug kernels have no kprobes")
    return [target.helper_module(name, folder, kernels.get(kernel))]


@pytest.fixture(scope="session")
def hold(pytestconfig) -> list[Path]:
    """A module that makes the first thread at a place in the target wait there."""
    return _with_kprobes(pytestconfig, "hold", HERE / "hold")


@pytest.fixture(scope="session")
def linger(pytestconfig) -> list[Path]:
    """A module that lets the next thread at a point in the target stand still."""
    return _with_kprobes(pytestconfig, "linger", HERE / "torture/linger")


@pytest.fixture(scope="session")
def loadable(pytestconfig) -> list[Path]:
    """A kernel that loads the target as a module."""
    if pytestconfig.getoption("--kernel") == kernels.UPSTREAM:
        pytest.skip("this kernel has the target built in")
    return []


@pytest.fixture(scope="session")
def pretend() -> list[Path]:
    """The library that lets a drive or the module say something else to the tool."""
    return [guest.program("pretend", HERE, ("-D_GNU_SOURCE", "-shared", "-fPIC"))]


@pytest.fixture(scope="session")
def journal() -> list[Path]:
    """A program that gets what is sent to systemd's journal."""
    return [guest.program("journal", HERE)]


@pytest.fixture(scope="session")
def prometheus() -> list[Path]:
    """Prometheus and the node exporter, and the alerts."""
    return [_unpacked("prometheus") / "usr/bin/prometheus",
            _unpacked("prometheus-node-exporter") / "usr/bin/prometheus-node-exporter",
            target.SOURCE / "metrics/mtftl-alerts.yml"]


@pytest.fixture(scope="session")
def fua(pytestconfig) -> list[Path]:
    """A program that writes with FUA alone, and the module that does it."""
    kernel = kernels.get(pytestconfig.getoption("--kernel"))
    return [guest.program("fua", HERE), target.helper_module("fuawrite", HERE / "torture/fuawrite", kernel)]


@pytest.fixture(scope="session")
def hinted(pytestconfig) -> list[Path]:
    """A program that says how long its data will live, on a kernel that passes it on."""
    if pytestconfig.getoption("--kernel") == "6.1":
        pytest.skip("a block device gets writers' hints since Linux 6.9")
    return [guest.program("hinted", HERE)]


@pytest.fixture(scope="session")
def swap(pytestconfig) -> list[Path]:
    """A kernel that can swap."""
    if pytestconfig.getoption("--kernel") in sourcekernel.DEBUG:
        pytest.skip("the debug kernels cannot swap")
    return []


@pytest.fixture(scope="session")
def scsi(pytestconfig) -> list[Path]:
    """A kernel that has SCSI disks, and the pretended one, as modules."""
    if pytestconfig.getoption("--kernel") in (*sourcekernel.DEBUG, kernels.UPSTREAM):
        pytest.skip("kernels that the lab builds have no SCSI")
    return []


@pytest.fixture(scope="session")
def kasan(pytestconfig) -> list[Path]:
    """The kernel that has kmemleak, and can fail allocations."""
    if pytestconfig.getoption("--kernel") != "kasan":
        pytest.skip("only the debug kernel has kmemleak and failing allocations: KERNEL=kasan")
    return []
