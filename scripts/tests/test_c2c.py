# SPDX-License-Identifier: GPL-2.0
"""`lab c2c`: what a run shared, by name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mtlab.build import kernels, target
from mtlab.cmd import c2c
from mtlab.run import machine
from mtlab.run.options import Options
from mtlab.util.base import LabError

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def report(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a module two of whose fields are on one line, each written by a CPU of its own."""
    folder = tmp_path_factory.mktemp("sharing")
    shutil.copytree(HERE / "sharing", folder / "sharing")
    target.build_module(kernels.get(kernels.DEFAULT), folder / "sharing")
    ko = folder / "sharing/sharing.ko"
    done = subprocess.run([sys.executable, "-B", lab, "c2c", "--no-module", "--profile", "none",
                           "--push", ko, "--names", ko, "--", "count_on; insmod sharing.ko; count_off"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_false_sharing_comes_first(report: str) -> None:
    """With the names of both fields and of what wrote to them, on one CPU each; an untouched field is left out."""
    first = report.split("Lines of memory, the most expensive first\n")[1].split("line ")[1]
    stores = re.findall(r"store +(\S+) +(\S+) \[sharing\] on (\d+) CPUs", first)
    assert {(what, cpus) for what, _, cpus in stores} == {("sharing_pair.left", "1"), ("sharing_pair.right", "1")}
    assert {function for _, function, _ in stores} == {"sharing_work"}
    assert "before" not in first


def test_what_is_there_is_summed_up(report: str) -> None:
    """A CPU loses the line before most of its 20,000 turns; a load and a store bring it back."""
    rows = report.split("The same by what is there\n")[1].split("\n\n")[0].splitlines()
    counts = {words[-1]: float(words[0]) for words in map(str.split, rows)}
    for name in ("sharing_pair.left", "sharing_pair.right"):
        assert 10000 <= counts[name] <= 45000


def test_two_runs_are_compared() -> None:
    """By what is there and by function, the largest change first; what only one of them has, too."""
    before = ("Lines of memory, the most expensive first\n     1.000 times       54.9 ns   line 14a21f\n\n"
              "The same by what is there\n     1.118 times       61.6 ns       7 lines  zone.lock\n"
              "     0.500 times       30.0 ns       1 lines  gone\n"
              "     0.100 times        5.0 ns       1 lines  same\n\n"
              "The same by function\n     2.000 times      100.0 ns   work [module]\n")
    after = before.replace("61.6", "1.6").replace("gone", "new").replace("100.0 ns", "90.5 ns")
    said = c2c.compared(before, after).splitlines()
    assert [line.split() for line in said if line and "against" not in line] == [
        ["-60.0", "ns,", "61.6", "to", "1.6", "zone.lock"], ["-30.0", "ns,", "30.0", "to", "0.0", "gone"],
        ["+30.0", "ns,", "0.0", "to", "30.0", "new"], ["-9.5", "ns,", "100.0", "to", "90.5", "work", "[module]"]]


def test_what_comes_from_another_socket_is_told() -> None:
    """Apart, and counted in the whole as well; with one socket there are no words about others."""
    near = "share 1000 1 0 4 204000 3 40 1f00\nmiss 1000 0 0 2 170000 1\n"
    far = "share 1000 1 1 1 110000 5 40 1f00\nmiss 2000 0 1 5 695000 1\n"

    def text(file: str) -> list[str]:
        return c2c.Report(*c2c.parse(file), c2c.Symbols(""), []).text(10).splitlines()

    assert text(near + far)[:2] == [
        "0.500 transfers an operation, 31.4 ns; 0.700 misses without another CPU, 86.5 ns",
        "of these from another socket: 0.100 transfers, 11.0 ns; 0.500 misses, 69.5 ns"]
    assert text(near + far)[-2:] == ["Misses that went to another socket, by function",
                                     "     0.500 times       69.5 ns   2000"]
    assert not [line for line in text(near) if "socket" in line]


def test_a_model_needs_virtual_time() -> None:
    with pytest.raises(LabError, match="expected --clock virtual"):
        machine.check(Options(memory_model="server"))


def test_two_sockets_are_two_nodes(lab_run) -> None:
    """Half of the CPUs and half of the memory, from a saved state and from scratch; three CPUs have no half."""
    command = "cd /sys/devices/system/node; cat online node*/cpulist; awk '/MemTotal/ {print ($4 > 4e5)}' node*/meminfo"
    for boot in (False, True):
        run = lab_run(command, clock="virtual", cpus=4, memory="1G", memory_model="server2", boot=boot, module=False,
                      profile="none")
        assert run.output.split() == ["0-1", "0-1", "2-3", "1", "1"]
        assert (run.start == "boot") == boot
    with pytest.raises(LabError, match="--cpus 3: server2 needs a multiple of 2"):
        machine.check(Options(clock="virtual", memory_model="server2", cpus=3))


def test_a_run_with_caches_repeats(lab_run) -> None:
    """To the bit, and it is another one than without."""
    command = "for i in 1 2 3; do (seq 500 | sort -rn | sha256sum; cat /proc/self/schedstat /proc/uptime) & done; wait"
    runs = [lab_run(command, clock="virtual", memory_model=model, module=False, profile="none")
            for model in ("server", "server", "desktop", "")]
    assert all(run.status == 0 for run in runs)
    assert runs[0].output == runs[1].output
    assert len({run.output for run in runs}) == 3
