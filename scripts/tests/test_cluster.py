# SPDX-License-Identifier: GPL-2.0
"""Runs on many machines: a real scheduler and real workers, in network namespaces with addresses of their own."""

import contextlib
import json
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from mtlab.build import parts
from mtlab.cmd import cli, cuts, judge, torture
from mtlab.exp import campaign, experiments
from mtlab.run import cluster, outcome
from mtlab.util import pool, stop
from mtlab.util.base import ROOT, LabError

pytestmark = pytest.mark.filterwarnings("ignore:make_current:DeprecationWarning")      # of Dask, in tornado
HERE = Path(__file__).parent
PAGE = ROOT / "docs/lab/machines.md"
sys.path.insert(0, str(HERE))           # a worker imports this module by its name, so we do

import cluster_calls as calls  # noqa: E402

OTHER = "other"             # the worker of another build
END = "setpriv", "--pdeathsig", "KILL"      # what is started ends with the test


@dataclass
class Net:
    """Machines in the eyes of the network: `before` a command starts it in there."""

    address: str
    before: Sequence[str] = ()


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


@contextlib.contextmanager
def _network(count: int) -> Iterator[list[Net]]:
    """The scheduler's place and those of workers; where no namespaces can be made, addresses of the loopback."""
    name, net = f"lab{os.getpid()}", f"10.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    spaces = [f"{name}-{i}" for i in range(1, count)]
    made = (not os.geteuid() and bool(shutil.which("ip")) and _ip("link", "add", f"{name}b", "type", "bridge")
            and _ip("address", "add", f"{net}.1/24", "dev", f"{name}b") and _ip("link", "set", f"{name}b", "up"))
    try:
        for i, space in enumerate(spaces, 1):
            made = made and all(_ip(*words.split()) for words in (
                f"netns add {space}", f"link add {name}v{i} type veth peer name eth0 netns {space}",
                f"link set {name}v{i} master {name}b up", f"-n {space} address add {net}.{i + 1}/24 dev eth0",
                f"-n {space} link set eth0 up", f"-n {space} link set lo up"))
        yield ([Net(f"{net}.1"), *(Net(f"{net}.{i}", ("ip", "netns", "exec", space))
                                  for i, space in enumerate(spaces, 2))]
               if made else [Net(f"127.0.1.{i}") for i in range(1, count + 1)])
    finally:
        for space in spaces:
            _ip("netns", "delete", space)
        _ip("link", "delete", f"{name}b")


@dataclass
class Machines:
    """A scheduler, and workers that come and go."""

    address: str
    nets: list[Net]
    place: Path
    processes: dict[str, "subprocess.Popen[bytes]"]

    def worker(self, name: str, root: Path = ROOT) -> None:
        """Start one, with a build folder of its own."""
        net = self.nets.pop()
        env = os.environ | {"MTFTL_BUILD": str(self.place / name), "MTFTL_TEST_WORKER": name, "PYTHONPATH": str(HERE),
                            "DASK_CONFIG": str(self.place / "lab.yaml")}
        with open(self.place / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                [*END, *net.before, sys.executable, "-B", root / "scripts/lab", "worker", "--jobs", "1", self.address,
                 "--", "--host", net.address, "--no-nanny", "--name", name], env=env, stdout=log, stderr=log)

    def wait(self, *names: str) -> None:
        """Until these are there."""
        from distributed import Client
        with Client(self.address, set_as_default=False) as client:
            while not {*names} <= {worker["name"] for worker in client.scheduler_info()["workers"].values()}:
                for name in names:
                    assert self.processes[name].poll() is None, (self.place / f"{name}.log").read_text()
                time.sleep(0.1)

    def do(self, jobs: Sequence[pool.Job[str]], share: float = 0) -> tuple[dict[str, str], Counter[str]]:
        """Results of jobs, or errors in words, and how often each was told."""
        found: dict[str, str] = {}
        told: Counter[str] = Counter()

        def done(job: pool.Job[str], future: "Future[str]", _left: str) -> None:
            found[job.name] = str(future.exception() or future.result())
            told[job.name] += 1

        with cluster.connect(self.address, share) as elsewhere:
            pool.side_by_side(jobs, 1, done, elsewhere)
        return found, told


def _make_key(place: Path) -> None:
    """Key and settings for TLS, as the page says."""
    text = PAGE.read_text()
    command, settings = (re.search(pattern, text, re.M) for pattern in (
        r"^    (openssl .*\\\n.*)$", r"^    (distributed:\n(?:     .*\n)+)"))
    assert command and settings
    subprocess.run(shlex.split(command[1].replace("\\\n", "")), cwd=place, check=True, capture_output=True)
    (place / "lab.yaml").write_text(re.sub("^    ", "", settings[1].replace("/etc/lab", str(place)), flags=re.M))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A scheduler, a slow worker, one that is not, and one of another build."""
    pytest.importorskip("distributed", reason="Debian's python3-distributed is not installed")
    import dask
    place = tmp_path_factory.mktemp("machines")
    _make_key(place)
    ours = dask.config.merge(dask.config.config, *dask.config.collect_yaml([str(place / "lab.yaml")]))
    with dask.config.set(ours), _network(6) as nets:
        about = place / "scheduler.json"
        with open(place / "scheduler.log", "wb") as log:
            scheduler = subprocess.Popen(
                [*END, sys.executable, "-m", "distributed.cli.dask_scheduler", "--protocol", "tls", "--host",
                 nets[0].address, "--port", "0", "--no-dashboard", "--scheduler-file", about], stdout=log, stderr=log,
                env=os.environ | {"DASK_CONFIG": str(place / "lab.yaml")})
        processes = {"scheduler": scheduler}
        try:
            calls.wait_for(place, about.name)
            while not (text := about.read_text()).endswith("}"):
                pass
            there = Machines(json.loads(text)["address"], nets[1:], place, processes)
            shutil.copytree(ROOT / "scripts", place / "copy/scripts", ignore=shutil.ignore_patterns("__pycache__"))
            (place / "copy/scripts/guest/init").write_text("another one\n")
            there.worker("slow")
            there.worker("fast")
            there.worker(OTHER, place / "copy")
            there.wait("slow", "fast", OTHER)
            yield there
        finally:
            for process in processes.values():
                process.kill()
                process.wait()


def _by(place: Path) -> dict[str, set[str]]:
    """Which calls each worker began."""
    found: dict[str, set[str]] = {}
    for path in place.glob("*-*"):
        number, _, name = path.name.partition("-")
        found.setdefault(name, set()).add(number)
    return found


def test_workers_are_killed_and_nothing_is_lost(machines: Machines, tmp_path: Path,
                                                capfd: pytest.CaptureFixture[str]) -> None:
    """Two die in a call, one of which came late; one is slow, one is refused. Results are those of one machine."""
    machines.worker("dies-1")
    machines.wait("dies-1")
    (tmp_path / "hold").touch()

    def kill() -> None:
        for name in ("slow", "fast"):
            calls.wait_for(tmp_path, f"*-{name}")
        for name in ("dies-1", "dies-2"):
            if name not in machines.processes:
                machines.worker(name)
            calls.wait_for(tmp_path, f"*-{name}")
            machines.processes[name].send_signal(signal.SIGKILL)
        (tmp_path / "hold").unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    found, told = machines.do([calls.job(tmp_path, number) for number in range(40)])
    killer.join()
    began = _by(tmp_path)
    assert found == {f"call {number}": calls.work(tmp_path, number) for number in range(40)}
    assert set(told.values()) == {1} and len(told) == 40
    assert began["dies-1"] and began["dies-2"] and OTHER not in began
    assert began["dies-1"] | began["dies-2"] <= began["slow"] | began["fast"]
    assert began["fast"] and began["slow"]
    said = capfd.readouterr().err
    refused = re.findall(r"worker \S+ is refused: it has build (\w+), expected (\w+)\n", said)
    assert len(refused) == 1 and refused[0][0] != refused[0][1] == parts.sources()
    counts = re.search(r"calls by worker: (.*)", said)
    assert counts and sum(map(int, re.findall(r"\S+:\d+ (\d+)", counts[1]))) == 40
    # Each fetched the file by its hash, because its build folder was empty.
    key = next(key for key, path in parts.files().items() if path == calls.data(tmp_path))
    assert (machines.place / "fast/parts" / key / "made/data").read_bytes() == calls.data(tmp_path).read_bytes()
    assert not (machines.place / OTHER / "parts").exists()


def test_a_share_is_done_twice_and_compared(machines: Machines, tmp_path: Path,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    found, _ = machines.do([calls.job(tmp_path, number) for number in range(8)], 1)
    began = _by(tmp_path)
    assert began["slow"] == began["fast"] == {str(number) for number in range(8)}
    assert found == {f"call {number}": calls.work(tmp_path, number) for number in range(8)}
    assert "8 calls were done twice, with the same bytes\n" in capfd.readouterr().err
    found, _ = machines.do([calls.job(tmp_path, 100, calls.name_of_it)], 1)
    assert re.fullmatch(r"call 100: tls://\S+ and tls://\S+ gave other bytes for the same inputs \w+",
                        found["call 100"])


def test_other_inputs_are_refused(machines: Machines, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A worker finds another digest of a call's inputs: another one does the call."""
    found, told = machines.do([calls.job(tmp_path, number, odd_one="fast") for number in range(200, 206)])
    assert found == {f"call {number}": calls.work(tmp_path, number) for number in range(200, 206)}
    assert set(told.values()) == {1} and {*_by(tmp_path)} - {""} == {"slow"}
    said = re.findall(r"worker \S+ refuses: the inputs of call \d+ are \w+ there, expected \w+", capfd.readouterr().err)
    assert len(said) == 1


def test_errors_come_back(machines: Machines, tmp_path: Path) -> None:
    """And what is not wanted any more when its turn comes is not done."""
    found, _ = machines.do([calls.job(tmp_path, 300, calls.fails),
                            calls.job(tmp_path, 301, wanted=lambda: False)])
    assert found == {"call 300": "300: as asked", "call 301": "None"} and not _by(tmp_path)


def test_an_interrupt_ends_calls_on_workers(machines: Machines, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "stop_all", lambda: None)         # it would stop the guests of later tests

    def interrupt(_job: pool.Job[str], _future: "Future[str]", _left: str) -> None:
        calls.wait_for(tmp_path, "400-begun")
        raise KeyboardInterrupt

    jobs = [calls.job(tmp_path, 400, calls.until_ended), pool.Job("here", lambda: "", 0)]
    with pytest.raises(KeyboardInterrupt), cluster.connect(machines.address) as elsewhere:
        pool.side_by_side(jobs, 1, interrupt, elsewhere)
    calls.wait_for(tmp_path, "400-ended")


class Elsewhere:
    """Another machine that is this one, as far as pickles can tell."""

    slots = 1

    def __init__(self) -> None:
        self.sent: list[str] = []

    def submit(self, job: pool.Job[object], begin: object) -> "Future[object]":
        assert job.far
        inputs, work, again = pickle.loads(pickle.dumps((job.far.inputs, job.far.work, job.far.again)))
        assert inputs() == job.far.key
        future: Future[object] = Future()
        future.set_result(work())
        assert job.far.proof(future.result()) == job.far.proof(again())
        self.sent.append(job.name)
        return future

    def cancel(self) -> None:
        pass


TOY = """
from mtlab.exp.experiments import About, Run
from mtlab.run.options import Options
DRIVE = "channels=4 dies=2 blocks=64 block_pages=64 read_ns=50000 program_ns=600000 gc_begin=95 spare_permille=250"
ABOUT = About("t", "q", by=["file"])
def runs(quick): return [Run("drives", f"a {DRIVE} requests=100 depth=4", Options(clock="model"), seeds=3)]
def samples(files): return [{"file": name, "data": data.decode()} for name, data in files["drives"].items()]
def checks(found, quick): return []
def table(found): return [[]]
def draw(found, path): pass
"""


def test_an_experiment_is_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was done elsewhere is kept here."""
    (tmp_path / "toy_far.py").write_text(TOY)
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    monkeypatch.setattr(campaign, "_build_first", lambda _runs: {})
    monkeypatch.setattr(campaign, "_provenance", lambda _runs, booted: {key: one.inputs for key, one in booted.items()})
    found: list[str] = []

    def take(elsewhere: Elsewhere | None, kept: str, fresh: bool = False) -> None:
        monkeypatch.setattr(outcome, "KEPT", tmp_path / kept)
        toy = experiments.load("toy-far")
        assert not campaign.Campaign([toy], False, lambda _one, results: found.append(results.text()), fresh=fresh,
                                     elsewhere=elsewhere).run()

    there = Elsewhere()
    take(None, "a")
    take(there, "b")
    assert len(there.sent) == 3
    take(there, "b")                    # all is kept
    assert len(there.sent) == 3
    take(there, "b", True)
    assert len(there.sent) == 6
    assert len(found) == 4 and len(set(found)) == 1


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Elsewhere:
    """Commands reach it; nothing is built."""
    there = Elsewhere()

    @contextlib.contextmanager
    def connect(_address: str, _share: float) -> Iterator[Elsewhere]:
        yield there

    monkeypatch.setattr(cluster, "connect", connect)
    monkeypatch.setattr(pool, "DURATIONS", tmp_path / "durations")
    for module, names in ((torture, ("program", "fua_module")), (judge, ("program",)),
                          (torture.target, ("tool", "module", "need_module"))):
        for name in names:
            monkeypatch.setattr(module, name, lambda *_args, **_more: None)
    return there


def _lab(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lab", *words, "--scheduler", "tcp://127.0.0.1:1"])
    return cli.main()


def test_torture_elsewhere(there: Elsewhere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                           capsys: pytest.CaptureFixture[str]) -> None:
    """What has not begun when a boot finds something does not begin."""
    monkeypatch.setattr(torture, "run_boot", calls.boot)
    monkeypatch.setattr(torture, "_inputs", calls.inputs_of)
    assert _lab(monkeypatch, "torture", "--cuts", "25", "--per-boot", "10", "--json", f"{tmp_path}/json",
                "--seed", "4") == 0
    found = json.loads((tmp_path / "json").read_text())
    assert found["cuts"] == 25 and found["processor_seconds"] == round(3 * 1.5)
    assert sorted(there.sent) == ["seed 4", "seed 5", "seed 6"]
    assert _lab(monkeypatch, "torture", "--cuts", "30", "--per-boot", "10", "--seed", "1") == 1
    assert "lost\nreplay: scripts/lab torture --seed 3 --cuts 10" in capsys.readouterr().out


def test_cuts_elsewhere(there: Elsewhere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                        capsys: pytest.CaptureFixture[str]) -> None:
    """What was made elsewhere is kept here."""
    monkeypatch.setattr(cuts, "KEPT", tmp_path)
    for name, instead in (("_make", calls.cuts_of), ("_inputs", calls.inputs_of), ("_inputs_there", calls.inputs_of),
                          ("_boot", calls.cuts_of)):
        monkeypatch.setattr(cuts, name, instead)
    for _ in range(2):
        assert _lab(monkeypatch, "cuts", "--boots", "3", "--cuts", "70") == 0
        assert capsys.readouterr().out.startswith("210 power cuts")
        assert len(there.sent) == 3 == len(list(tmp_path.glob("*.json")))


@pytest.mark.parametrize(("words", "said"), [
    (("tcp://8.8.8.8:8786",), "8.8.8.8 is in a public network, expected tls://"),
    (("10.0.0.1",), "expected tcp://HOST:PORT or tls://HOST:PORT"),
    (("ucx://10.0.0.1:8786",), "expected tcp://HOST:PORT or tls://HOST:PORT"),
    (("", 0.5), "expected --scheduler"),
    (("tcp://10.0.0.1:8786", 2), "expected 0 to 1")])
def test_what_is_not_done(words: tuple[str, float], said: str) -> None:
    with pytest.raises(LabError, match=said), cluster.connect(*words):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "tcp://10.1.2.3:8786", "tls://8.8.8.8:8786", "tcp://[::1]:1"])
def test_private_networks_and_tls(address: str) -> None:
    cluster.check(address)


@pytest.mark.parametrize("words", [("cuts", "--bugs"), ("torture", "--storm", "3"), ("torture", "--clock", "wall")])
def test_what_stays_on_one_machine(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    assert _lab(monkeypatch, *words) and "--scheduler: " in capsys.readouterr().err
