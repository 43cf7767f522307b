# SPDX-License-Identifier: GPL-2.0
"""The lab's own parts, without a guest."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.colors
import matplotlib.image
import pytest
from mtlab.build import debian, emulator, guest, kernels, target
from mtlab.cmd import cli, completion, report, story
from mtlab.cmd import experiments as commands
from mtlab.exp import campaign, compare, experiments, figures, fio
from mtlab.exp.campaign import Campaign
from mtlab.exp.results import RESULTS, Results, again, format_checks, judge, write
from mtlab.run import accel, failure, machine, outcome, process, qemu
from mtlab.run.options import Options
from mtlab.run.outcome import Result
from mtlab.util import base, cpio, pool
from mtlab.util.base import ROOT, LabError, fresh_folder, update_file

LAB = ROOT / "scripts/lab"


def _lab(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAB, *args], capture_output=True, text=True, timeout=60, env=os.environ | env)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nobody_at_work(number: int, tmp_path: Path) -> None:
    """Neither make nor what it calls, although only the lab is told."""
    signal.signal(signal.SIGINT, signal.default_int_handler)    # not ignored, as below a job in the background
    (tmp_path / "outer").write_text(f"all:\n\t$(MAKE) -f {tmp_path}/inner\n")
    (tmp_path / "inner").write_text("all:\n\techo begun\n\tsleep 1000\n")
    log = tmp_path / "log"
    program = ("from pathlib import Path; from mtlab.util import base, stop; stop.end_cleanly_on_signals()\n"
               f"base.logged(['make', '-f', '{tmp_path}/outer'], Path('{log}'))")
    with subprocess.Popen([sys.executable, "-Bc", program], cwd=ROOT / "scripts", stderr=subprocess.DEVNULL) as lab:
        while not subprocess.run(["pgrep", "-f", f"{tmp_path}/inner"], capture_output=True).stdout:
            assert lab.poll() is None
        lab.send_signal(number)
        lab.wait(timeout=60)
    assert subprocess.run(["pgrep", "-f", f"make.*{tmp_path}"], capture_output=True).returncode == 1


@pytest.mark.parametrize(("args", "existing"), [
    (("exp", "no-such"), "scaling"),
    (("run", "--profile", "no-such", "--", "true"), "stock"),
    (("run", "--kernel", "no-such", "--", "true"), "6.12, 6.1"),
])
def test_unknown_names_list_the_known(args: tuple[str, ...], existing: str, tmp_path: Path) -> None:
    """And that before anything is built or probed."""
    done = _lab(*args, MTFTL_BUILD=str(tmp_path / "build"))
    assert not (tmp_path / "build").exists()
    assert done.returncode == failure.KINDS["setup"][0]
    assert "'no-such'" in done.stderr and existing in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_device_and_memory_are_refused() -> None:
    assert "expected KEY=VALUE" in _lab("run", "--device", "zoned", "--", "true").stderr
    with pytest.raises(LabError, match="a number with M or G"):
        machine.need_memory("much")
    with pytest.raises(LabError, match="MiB available"):
        machine.need_memory("9000G")


@pytest.mark.parametrize(("room", "held"), [(6 << 30, True), ((6 << 30) - 1, False)])
def test_the_flash_is_in_memory_where_that_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int,
                                                    held: bool) -> None:
    """For the guest's 2 GiB and the 4 GiB that the drive may come to hold; what is to be kept goes to its file."""
    monkeypatch.setattr(machine, "memory_at_once", lambda: room)
    media = tmp_path / "media"
    with machine._flash_in_memory(Options(profile="tlc", memory="2G"), tmp_path):
        assert media.is_symlink() == held
        media.write_bytes(b"kept nowhere")
        assert ("memfd" in os.readlink(media.readlink())) if held else media.is_file()
    media.unlink()
    with machine._flash_in_memory(Options(profile="tlc", memory="2G", media=media), tmp_path):
        assert not media.is_symlink()


@pytest.mark.parametrize(("device", "size"), [({}, 4 << 30), ({"flash.size": "48M"}, 48 << 20),
                                              ({"ns0.flash.size": "4096"}, 4096)])
def test_size_of_the_flash(device: dict[str, str], size: int) -> None:
    assert qemu.flash_size(Options(profile="tlc", device=device)) == size


def test_further_drives_are_like_the_first(tmp_path: Path) -> None:
    """Each has its own controller and image; what a user sets is for all of them."""
    options = Options(profile="tlc", drives=3, device={"flash.size": "1G", "nvme0.mdts": "4", "subsys0.nqn": "x"})
    args = qemu.device_arguments(options, tmp_path)
    assert qemu.flash_size(options) == 3 << 30
    for drive in (1, 2):
        assert f"driver=nvme-subsys,id=subsys{drive},nqn=x" in args
        assert f"driver=nvme,id=nvme{drive},serial=mtftl{drive},subsys=subsys{drive},mdts=4" in args
        namespace = dict(pair.split("=") for pair in next(x for x in args if f"id=ns{drive}," in x).split(","))
        assert namespace == qemu.profile_settings("tlc") | {
            "id": f"ns{drive}", "bus": f"nvme{drive}", "flash.media": f"{tmp_path}/media{drive}", "flash.size": "1G"}


def test_make_help_names_every_goal() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony
    help_text = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True).stdout
    assert set(re.findall(r"^  make (\w+)", help_text, re.M)) == set(phony[1].split()) - {"help"}
    assert help_text.count("\n") < 24, "it fits a screen"


def test_the_labs_help_names_every_command_once() -> None:
    shown = cli._parser().format_help()
    named = re.findall(r"^  (\w+) +\w", shown, re.M)
    usage = subprocess.run([sys.executable, ROOT / "scripts/lab", "no-such"], capture_output=True, text=True).stderr
    assert sorted(named) == sorted(re.findall(r"'(\w+)'", usage.partition("choose from")[2]))


def test_cpio_is_read_by_others(tmp_path: Path) -> None:
    archive = cpio.Archive()
    archive.file("deep/in/a", b"xyz", 0o755)
    archive.link("l", "deep/in/a")
    done = subprocess.run(["busybox", "cpio", "-id"], input=archive.bytes(), cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "l").read_bytes() == b"xyz"
    assert (tmp_path / "deep/in/a").stat().st_mode & 0o777 == 0o755
    again = cpio.Archive()
    again.copy(tmp_path / "deep", "deep")
    again.link("l", "deep/in/a")
    assert again.bytes() == archive.bytes()


def test_archive_entries_of_both_formats(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("# deb http://old/ bookworm main\ndeb-src http://src/ bookworm main\n"
                                           "deb [arch=amd64 signed-by=/k.gpg] http://one/debian bookworm main\n")
    (tmp_path / "sources.list.d/a.sources").write_text(
        "Types: deb deb-src\n# a comment\nURIs: http://two/debian\nSuites: bookworm bookworm-updates\n"
        "Signed-By: /usr/share/k.gpg\n\nTypes: deb\nEnabled: no\nURIs: http://off/\nSuites: bookworm\n")
    assert debian.entries(tmp_path) == [
        ("http://one/debian", "bookworm", "/k.gpg"), ("http://two/debian", "bookworm", "/usr/share/k.gpg"),
        ("http://two/debian", "bookworm-updates", "/usr/share/k.gpg")]


def test_a_runs_archive_is_the_same_in_every_process() -> None:
    """Sets of names have another order in each process of Python."""
    program = ("from pathlib import Path; from mtlab.build import guest; from mtlab.util import base; "
               "print(base.digest(guest.run_archive('true', pushed=[], pulled=[], insmod=None, "
               "programs=[Path('/usr/bin/fio')], wait_for='')))")
    found = {subprocess.run([sys.executable, "-Bc", program], cwd=ROOT / "scripts", capture_output=True, text=True,
                            env=dict(os.environ, PYTHONHASHSEED=str(seed)), check=True).stdout for seed in range(4)}
    assert len(found) == 1


@pytest.fixture
def small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source of one file, and a patch series of ours over it."""
    source, ours = tmp_path / "source", tmp_path / "ours"
    (source / "hw").mkdir(parents=True)
    (source / "hw/a.c").write_text("one\ntwo\n")
    (ours / "patches").mkdir(parents=True)
    (ours / "hw").mkdir()
    (ours / "hw/b.c").write_text("new\n")
    (ours / "patches/series").write_text("0001-x.patch\n")
    (ours / "patches/0001-x.patch").write_text("--- a/hw/a.c\n+++ b/hw/a.c\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n")
    monkeypatch.setattr(emulator, "OURS", ours)
    return source


def test_patches_and_files_are_laid_over_the_source(small_tree: Path) -> None:
    assert emulator.patched(small_tree) == {"hw/a.c": b"one\nthree\n", "hw/b.c": b"new\n"}


def test_failing_patch_is_named(small_tree: Path) -> None:
    (small_tree / "hw/a.c").write_text("something else\n")
    with pytest.raises(LabError, match="0001-x.patch does not apply"):
        emulator.patched(small_tree)


def test_missing_patch_is_named(small_tree: Path) -> None:
    with (emulator.OURS / "patches/series").open("a") as f:
        f.write("0002-y.patch\n")
    with pytest.raises(LabError, match="0002-y.patch"):
        emulator.patched(small_tree)


def test_unfinished_folder_is_never_seen(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), fresh_folder(tmp_path / "f") as part:
        (part / "a").touch()
        raise RuntimeError
    assert not (tmp_path / "f").exists()
    with fresh_folder(tmp_path / "f") as part:
        assert not (part / "a").exists()
    assert (tmp_path / "f").is_dir()


def test_unchanged_file_keeps_its_time(tmp_path: Path) -> None:
    assert update_file(tmp_path / "a", b"1")
    before = (tmp_path / "a").stat().st_mtime_ns
    assert not update_file(tmp_path / "a", b"1")
    assert (tmp_path / "a").stat().st_mtime_ns == before


@pytest.mark.parametrize(("line", "kind"), [
    ("[    5.6] Kernel panic - not syncing: sysrq triggered crash", "panic"),
    ("[    5.6] BUG: kernel NULL pointer dereference, address: 0000000000000008", "oops"),
    ("[    5.6] Oops: general protection fault, 0000 [#1] PREEMPT SMP", "oops"),
    ("[    5.6] kernel BUG at drivers/md/dm.c:100!", "bug"),
    ("[    5.6] WARNING: CPU: 1 PID: 12 at block/bio.c:1 x+0x1/0x2", "warning"),
    ("[    5.6] WARNING: block/bio.c:1 at x+0x1/0x2, CPU#1: insmod/12", "warning"),
    ("[    5.6] WARNING: at x+0x1/0x2 [y], CPU#1: insmod/12", "warning"),
    ("[    5.6] WARNING: possible circular locking dependency detected", "lockdep"),
    ("[    5.6] BUG: sleeping function called from invalid context at mm/slab.h:1", "lockdep"),
    ("[    5.6] BUG: KASAN: slab-use-after-free in x+0x1/0x2", "sanitizer"),
    ("[    5.6] BUG: KCSAN: data-race in a / b", "sanitizer"),
    ("[   26.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [a:1]", "hang"),
    ("[  130.1] INFO: task fio:12 blocked for more than 120 seconds.", "hang"),
    ("[  130.1] INFO: task fio:12 blocked in I/O wait for more than 120 seconds.", "hang"),
    ("[   21.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "hang"),
    ("[    1.0] nvme nvme0: 2/0/0 default/read/poll queues", None),
    ("[    1.0] WARNING! this is not a report", None),
])
def test_console_reports(line: str, kind: str | None) -> None:
    found = failure.find(f"[    1.0] before\n{line}\n[    6.0] Kernel panic - not syncing: Fatal exception\n"
                         if kind else line)
    assert (found.kind if found else None) == kind
    if found:
        assert found.lines[0] == line


def test_a_warning_is_shown_with_its_words() -> None:
    """The kernel prints the message between the line that cuts and the one that says WARNING."""
    said = ["[    2.0] ------------[ cut here ]------------", "[    2.0] dm-mtftl: expected !zone->wp; zone 7: wp 3",
            "[    2.0] WARNING: CPU: 0 PID: 7 at zone/zones.c:25 set_state+0x1/0x2"]
    found = failure.find("\n".join(["[    1.0] before", *said, "[    2.0] after"]))
    assert found and found.kind == "warning" and found.lines == (*said, "[    2.0] after")
    assert found.detail.startswith("WARNING: CPU: 0")


def _fio_output(iops: int, runtime: int = 26) -> bytes:
    side = {"total_ios": iops // 40, "runtime": runtime, "io_bytes": 4096 * iops // 40,
            "clat_ns": {"mean": 1e9 / iops, "max": 5e6, "percentile": {f"{p:.6f}": 1000 for p in fio.PERCENTILES}}}
    job = {"error": 0, "write": side, "job options": {"runtime": "25ms", "numjobs": "5", "iodepth": "2"}}
    return (b"fio: a note before\n" + str({"jobs": [job]}).replace("'", '"').encode())


def _scaling() -> tuple[experiments.Experiment, list[experiments.Sample]]:
    experiment = experiments.load("scaling")
    rates = {"single": {1: 100, 2: 90, 4: 60, 8: 50}, "multi": {1: 100, 2: 200, 4: 400, 8: 780},
             "raw": {1: 50, 2: 100, 4: 200, 8: 400}}
    files = {f"tlc-{line}": {f"{users}.json": _fio_output(rate * 1000) for users, rate in points.items()}
             for line, points in rates.items()}
    return experiment, experiment.samples(files)


def test_a_log_gives_what_ended_within_a_time() -> None:
    """Ten requests a millisecond, the n-th of which took n microseconds; those before and after do not count."""
    log = b"".join(b"%d, %d, 1, 4096, 0, 0\n" % (n // 10, 1000 * n) for n in range(1, 400))
    found = fio.logged({"a_lat.1.log": log, "b_lat.1.log": b"20, 1, 1, 4096, 0, 0\n"}, "a", 0.01, 0.03, 4096)
    assert found["ios"] == 200 and found["iops"] == 10_000 and found["bytes_per_s"] == 40_960_000
    assert (found["p50_us"], found["p99_us"], found["max_us"]) == (199, 297, 299)
    with pytest.raises(ValueError, match="no request"):
        fio.logged({"a_lat.1.log": log}, "a", 1, 2, 4096)


def test_a_short_job_gives_the_time_it_ran() -> None:
    """fio says 26 ms of a job that ran 25."""
    assert fio.sample(_fio_output(100_000), "write", 0.025)["iops"] == 100_000
    with pytest.raises(ValueError, match="ran for 0.026 s"):
        fio.sample(_fio_output(100_000), "write", 0.05)


def test_a_straggler_does_not_slow_the_others() -> None:
    """Of 2,500 requests at most ten ended after the 25 ms that five jobs were told to run, with two each in flight."""
    found = fio.sample(_fio_output(100_000, runtime=36), "write", 0.025)
    assert found["iops"] == 2490 / 0.025 and found["bytes_per_s"] == 4096 * found["iops"]
    assert fio.sample(_fio_output(400, runtime=36), "write", 0.025)["iops"] == round(10 / 0.035, 3)


def test_a_miss_shows_what_is_known_about_it() -> None:
    held, missed = (experiments.at_least("n", measured, 2, experiments.ours("predicted so"), "found so")
                    for measured in (3, 1))
    assert held.passed and not missed.passed
    shown = format_checks([c.record() for c in (held, missed)])
    assert shown.splitlines()[0] == "ok   n: 3, bound >= 2"
    assert "predicted so; found so" in shown.splitlines()[1]


def test_experiment_judges_its_samples() -> None:
    experiment, samples = _scaling()
    assert samples[0]["line"] == "multi" and samples[0]["iops"] == 100_000
    assert all(c.passed for c in experiment.checks(samples, True))
    next(s for s in samples if s["line"] == "multi" and s["users"] == 8)["iops"] = 200_000
    missed = {c.name for c in experiment.checks(samples, True) if not c.passed}
    assert missed == {"tlc: multi over single at 8 users", "tlc: share of linear growth from 1 to 8 users",
                      "tlc: multi over the raw device at 8 users"}


def test_the_demo_ends_in_plain_words() -> None:
    """For people who never saw this: what was compared and what came out; a miss is said, and is no alarm."""
    experiment, samples = _scaling()
    words = " ".join(commands.told(judge(experiment, True, [samples], {})).split())
    assert "with 8 users dm-mtftl takes 780,000 writes a second, 15.6 times as many as one buffer and one thread, " \
        "and 195% of what the bare drive takes" in words
    assert words.endswith("5 figures were predicted: 5 hold.")
    next(s for s in samples if s["line"] == "multi" and s["users"] == 8)["iops"] = 250_000
    words = " ".join(commands.told(judge(experiment, True, [samples], {})).split())
    assert "2 hold, 3 do not; results/scaling/README.md says which." in words
    assert "MISS" not in words


def test_the_demo_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Before each step, and what to try next at its end."""
    for module, name in ((commands.debian, "ensure"), (commands.emulator, "build"), (commands, "_guest")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(commands, "Campaign", lambda *_: argparse.Namespace(run=list))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert commands._demo(argparse.Namespace()) == 0
    said = re.findall(r"step (\d) of 3: .*; about (\d+ \w+) left", capsys.readouterr().err)
    assert said == [("1", "5 min"), ("2", "2 min"), ("3", "50 s")]
    assert commands.NEXT.count("\n") == 3


@pytest.mark.parametrize(("line", "words"), [
    ("ru", {"run"}), ("exp sca", {"scaling"}), ("exp --qu", {"--quick"}), ("run --clock v", {"virtual"}),
    ("run --profile zn", {"zn540"}), ("run --kernel ka", {"kasan"}), ("build em", {"emulator"}),
    ("run --push exp", set()), ("run x", set())])
def test_the_command_line_is_completed(line: str, words: set[str]) -> None:
    """In bash, as words are typed."""
    typed = ["lab", *line.split(" ")]
    script = completion.script(cli._parser(), cli._words())
    array = " ".join(f"'{word}'" for word in typed)
    done = subprocess.run(["bash", "-c", f"{script}\nCOMP_WORDS=({array}) COMP_CWORD={len(typed) - 1}\n_lab\n"
                           'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True)
    assert not done.stderr
    assert set(done.stdout.split()) == words


def test_results_are_judged_again_without_a_guest(tmp_path: Path) -> None:
    experiment, samples = _scaling()
    first = judge(experiment, True, [samples], {"inputs": {"tlc-raw": "not kept"}})
    write(experiment, first, tmp_path)
    assert again(experiment, tmp_path) == first
    with pytest.raises(LabError, match="no results"):
        again(experiment, tmp_path / "none")


def test_older_results_are_brought_up_to_date(tmp_path: Path) -> None:
    """Before schema 3 scripts were there in full."""
    experiment, samples = _scaling()
    scripts = {"tlc-raw": "fio"}
    first = judge(experiment, True, [samples], {"inputs": {"tlc-raw": "not kept"}, "scripts": scripts})
    write(experiment, replace(first, schema=2), tmp_path)
    second = again(experiment, tmp_path)
    assert second.provenance["scripts"] == {"tlc-raw": base.digest("fio")}
    assert replace(second, provenance=first.provenance) == first
    write(experiment, second, tmp_path)
    assert again(experiment, tmp_path) == second


def test_every_experiment_is_well_formed() -> None:
    for name in experiments.names():
        experiment = experiments.load(name)
        for quick in (True, False):
            runs = experiment.runs(quick)
            assert runs and len({r.name for r in runs}) == len(runs)
            for run in runs:
                subprocess.run(["bash", "-n"], input=run.script, text=True, check=True)


def test_figure_is_the_same_twice(tmp_path: Path) -> None:
    experiment, samples = _scaling()
    for name in ("a", "b"):
        experiment.draw(samples, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_figures_show_the_spread() -> None:
    """Bars from the least to the most where there is a spread, on lines, beside and above bars; else a band."""
    _, axes = figures.panels(4)
    spread = [(1.0, 4.0), (2.0, 2.0)]
    figures.lines(axes[0], [figures.Line("a", [1, 2], [3, 2], spread=spread)], x="x", y="y")
    figures.lines(axes[1], [figures.Line("a", [1, 2], [3, 2], marker=False, spread=spread)], x="x", y="y")
    figures.bars(axes[2], ["1", "2"], [figures.Bars("a", [3, 2], spread)], y="y")
    figures.sideways(axes[3], ["1", "2"], [3, 2], x="x", spread=spread)
    for panel, end in ((axes[0], (1, 4)), (axes[2], (0, 4)), (axes[3], (4, 0))):
        (bar,) = (segment for drawn in panel.collections for segment in drawn.get_segments())
        assert tuple(bar[1]) == end
    (band,) = axes[1].collections
    assert band.get_paths()[0].get_extents().bounds == (1, 1, 1, 3)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [str(found) for found in compare.differences(old, new)]


def test_differences_name_what_moved() -> None:
    old = {"samples": [{"line": "a", "iops": 100.0}], "checks": [{"name": "c", "pass": True}]}
    new = {"samples": [{"line": "a", "iops": 110.0}], "checks": [{"name": "c", "pass": False}]}
    assert _differences(old, old) == []
    assert _differences(old, new) == ["line=a: iops 100.0 -> 110.0 (+10.00%)", "check c: pass -> miss"]
    assert _differences(old, {**new, "by": ["line"]}) == _differences(old, new)


def test_a_change_that_a_seed_makes_too_is_said() -> None:
    old = {"by": ["line"], "checks": [{"name": "c", "pass": True, "measured": 6, "least": 5.5, "most": 6.5}],
           "samples": [{"line": "a", "iops": 100, "iops_least": 95, "iops_most": 108}, {"line": "b", "iops": 5}]}
    new = {"by": ["line"], "checks": [{"name": "c", "pass": False, "measured": 5.9}],
           "samples": [{"line": "c", "iops": 1}, {"line": "a", "iops": 107, "iops_least": 106, "iops_most": 109}]}
    assert _differences(old, new) == [
        "samples: gone 0 -> 1", "samples: new 0 -> 1", "line=a: iops 100 -> 107 (+7.00%, within the spread)",
        "check c: pass -> miss (within the spread)"]
    new["samples"][1]["iops"], new["checks"][0]["measured"] = 109, 5.4
    assert _differences(old, new)[2:] == ["line=a: iops 100 -> 109 (+9.00%)", "check c: pass -> miss"]


def _toy(seeds: int = 3) -> experiments.Experiment:
    """An experiment of two runs, one of which is repeated; its guests say what their script says."""
    def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[experiments.Sample]:
        return [{"line": name, "word": "same", "iops": int(outputs["out"])} for name, outputs in files.items()]

    def checks(found: list[experiments.Sample], _quick: bool) -> list[experiments.Check]:
        once, often = (s["iops"] for s in found)
        return [experiments.at_least("often over once", often / once, 2, experiments.ours("so")),
                experiments.at_most("once", once, 10, experiments.ours("so"))]

    return experiments.Experiment(
        "toy", experiments.About("t", "q", ("line",)),
        lambda _quick: [experiments.Run("once", "echo 10 >out", Options(clock="virtual")),
                        experiments.Run("often", "echo $((19 + seed * seed)) >out", Options(clock="virtual"),
                                        seeds=seeds)],
        samples, checks, lambda found: [["line", "iops"], *([s["line"], experiments.shown(s, "iops", ".0f")]
                                                            for s in found)], lambda _found, _path: None)


BUILD_FIRST = campaign._build_first


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Guests that are bash on the host; the scripts that ran, in their order."""
    ran: list[str] = []

    def boot(script: str, options: Options, **_: object) -> Result:
        ran.append(script)
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(["bash", "-c", script.replace("usleep", ":")], cwd=place, text=True,
                                  capture_output=True)
            files = {path.name: path.read_bytes() for path in Path(place).iterdir()}
        return Result(done.returncode, None, done.stderr, "", files, 1, base.digest(script), "")

    monkeypatch.setattr(machine, "run", boot)
    monkeypatch.setattr(campaign, "_build_first", lambda _runs: {})
    monkeypatch.setattr(campaign, "_provenance", lambda _runs, booted: {"inputs": {
        key: result.inputs for key, result in booted.items()}})
    monkeypatch.setattr(pool, "DURATIONS", tmp_path / "durations")
    return ran


def _take(*chosen: experiments.Experiment, at_once: int = 1) -> tuple[list[Results], list[str]]:
    found: list[Results] = []
    failed = Campaign(chosen, False, lambda _experiment, results: found.append(results), at_once=at_once).run()
    return found, failed


def test_results_hold_the_median_and_the_spread(guests: list[str]) -> None:
    """19, 20 and 23 a tenth of which is what the check measures: its bound, 2, lies between."""
    (results,), failed = _take(_toy())
    assert not failed and results.samples == [
        {"line": "once", "word": "same", "iops": 10},
        {"line": "often", "word": "same", "iops": 20, "iops_least": 19, "iops_most": 23}]
    ratio, once = results.checks
    assert (ratio["measured"], ratio["least"], ratio["most"], ratio["pass"]) == (2, 1.9, 2.3, True)
    assert ratio["bound_within_spread"] and "least" not in once
    shown = format_checks(results.checks).splitlines()
    assert shown == ["ok   often over once: 2 (1.9 to 2.3), bound >= 2, which lies within the spread",
                     "ok   once: 10, bound <= 10"]
    assert results.table[2] == ["often", "20 (19 to 23)"]
    missed = report.found({"table": [["a"]], "checks": [{**ratio, "pass": False}]})
    assert "- often over once: 2 (1.9 to 2.3), predicted >= 2, which lies within the spread." in missed


def test_the_same_seed_gives_the_same_bytes(guests: list[str]) -> None:
    """Scripts differ by the seed alone, and are the same in every process."""
    first, second = (_take(_toy())[0][0].text() for _ in range(2))
    assert first == second and guests[:4] == guests[4:] and len(set(guests)) == 4
    run = _toy().runs(False)[1]
    assert [run.seeded(seed) for seed in (0, 2)] == [f"seed=0\n{run.script}", f"seed=2\nusleep 927\n{run.script}"]
    job = fio.command("fio.json", rw="read")
    said = [subprocess.run(["bash", "-c", f"seed={seed}; echo {job}"], capture_output=True, text=True).stdout
            for seed in (0, 1)]
    assert "--randseed=42 " in said[0] and "--randseed=142 " in said[1]


def test_all_experiments_share_one_queue(guests: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """The longest run first, whosever it is; an experiment is told when its last guest ends, not when all have."""
    long, short = (replace(_toy(2), name=name) for name in ("long", "short"))
    pool.remember(campaign.DURATIONS, {"long once": 9, "long often": 7, "long often@1": 5, "short once": 1,
                                          "short often": 8, "short often@1": 6})
    order = []
    Campaign([short, long], False, lambda experiment, _: order.append((experiment.name, len(guests))), at_once=1).run()
    said = [line.partition("] ")[2] for line in capfd.readouterr().err.splitlines()]
    assert [line.partition(" (")[0] for line in said[1:]] == [
        "long once", "short often", "long often", "short often@1", "long often@1", "short once"]
    assert said[0] == "short, long: 6 guests" and said[1].startswith("long once (1 s); 1 of 6 done, about ")
    assert [name for name, _ in order] == ["long", "short"]


@pytest.mark.parametrize("name", [  # a prediction is committed before its result
    name for name in experiments.names() if (RESULTS / name / "results.json").exists()])
def test_samples_are_told_apart(name: str) -> None:
    """By what they are of: else those of several seeds would be taken for one, and lab diff would miss some."""
    results = json.loads((RESULTS / name / "results.json").read_text())
    assert len(compare.by_identity(results, results.get("by", ()))) == len(results["samples"])
    assert experiments.load(name).about.by


def test_a_run_tells_what_it_worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of processors: beside other work it takes longer, and costs the same."""
    console, output = (tmp_path / name for name in ("console", "output"))
    for path in (console, output):
        path.touch()
    wrong, status, worked = process.emulate(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], tmp_path / "qemu", None,
        process.Tail(console, None), process.Tail(output, None), Options())
    assert (wrong, status) == (None, 0) and worked >= 0.25
    monkeypatch.setattr(outcome, "KEPT", tmp_path)
    kept = Result(0, None, "", "", {}, 5.0, "inputs", "virtual time", worked=worked)
    outcome.keep(kept)
    assert outcome.recall("inputs") == kept


def test_the_costs_of_experiments_are_listed() -> None:
    """As their guests last took, else as they are said to take; the sum is of what `--all` runs."""
    def listed(known: Mapping[str, float]) -> dict[str, list[str]]:
        return {row[0]: row[1:] for row in commands.costs(known, 2)[1:]}

    first, second = listed({}), listed({"engines engines": 6000.0})
    assert set(first) == {*experiments.names(), "all but the long"}
    guests = {name: sum(run.seeds for run in experiments.load(name).runs(False)) for name in experiments.names()}
    assert {name: int(first[name][0]) for name in guests} == guests
    long = {name for name in guests if experiments.load(name).about.long}
    assert {name for name in guests if first[name][3] == "long"} == long == {"femu-full"}
    assert int(first["all but the long"][0]) == sum(guests.values()) - guests["femu-full"]
    assert [name for name in first if first[name] != second[name]] == ["engines", "all but the long"]
    assert second["engines"][1:3] == ["101.0", "1.0"] and int(second["all but the long"][1]) >= 100
    assert all(row[1] == row[2] for name, row in first.items() if name in guests)


def test_only_work_is_remembered(guests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not how long a guest took beside others, which says nothing of its costs."""
    _take(_toy())
    assert pool.known(campaign.DURATIONS) == {}
    boot = machine.run
    monkeypatch.setattr(machine, "run", lambda *args, **more: replace(boot(*args, **more), worked=0.5))
    _take(_toy())
    assert set(pool.known(campaign.DURATIONS).values()) == {0.5}


def test_a_failed_run_costs_its_experiment_alone(guests: list[str]) -> None:
    bad = replace(_toy(), name="bad", runs=lambda _: [
        experiments.Run(name, "exit 3", Options(clock="virtual"), seconds=99) for name in ("a", "b", "c")])
    found, failed = _take(_toy(), bad)
    assert failed == ["bad"] and [results.experiment for results in found] == ["toy"]
    assert sum("exit 3" in script for script in guests) < 3


def test_a_kernel_that_cannot_be_had_costs_its_experiment_alone(guests: list[str], monkeypatch: pytest.MonkeyPatch,
                                                                capfd: pytest.CaptureFixture[str]) -> None:
    for module, name in ((emulator, "build"), (guest, "base"), (guest, "tools"), (guest, "modules"),
                         (target, "module"), (target, "tool")):
        monkeypatch.setattr(module, name, lambda *_: None)

    def get(name: str) -> str:
        if name == "pblk":
            raise base.LabError("the archive has no linux-source-5.10")
        return name

    monkeypatch.setattr(kernels, "get", get)
    monkeypatch.setattr(campaign, "_build_first", BUILD_FIRST)
    old = replace(_toy(), name="old", runs=lambda _: [experiments.Run("a", "true", Options(clock="virtual",
                                                                                         kernel="pblk"))])
    found, failed = _take(old, _toy())
    assert failed == ["old"] and [results.experiment for results in found] == ["toy"]
    assert "old failed: no kernel pblk: the archive has no linux-source-5.10" in capfd.readouterr().err


def test_a_spread_outlives_the_runs_it_came_from(guests: list[str], tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged again, with the guests' files and without."""
    experiment = _toy()
    (first,), _ = _take(experiment)
    write(experiment, first, tmp_path)
    monkeypatch.setattr(outcome, "recall", lambda _inputs: None)
    assert again(experiment, tmp_path) == first


def test_report_stands_alone(tmp_path: Path) -> None:
    experiment, samples = _scaling()
    checks = [c.record() for c in experiment.checks(samples, True)]
    results = Results("scaling", experiment.about.title, experiment.about.question, "", True, {},
                                  samples, checks, experiment.table(samples))
    write(experiment, results, tmp_path / "scaling")
    done = _lab("report", "--results", str(tmp_path), "--out", str(tmp_path / "r.html"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "r.html").read_text()
    assert f"{len(checks)} of {len(checks)} checks hold: {len(checks)} of {len(checks)} predictions of our" in page
    links = set(re.findall(r'(?:src|href)="?([^"\s>]+)', page))
    assert not [x for x in links if not x.startswith("#") and not x.startswith("'#")]


def test_the_lab_writes_no_bytecode_into_the_tree() -> None:
    assert sys.dont_write_bytecode


def test_guests_that_start_together_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BUILD", tmp_path)
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        built = set(pool.map(lambda _: guest.program("guest-area"), range(4)))
    assert len(built) == 1 and all(path.exists() for path in built)


def test_report_in_a_browser(tmp_path: Path) -> None:
    """A real browser draws the page: the figure's colours are on the screen, and nothing came from elsewhere."""
    experiment, samples = _scaling()
    checks = [experiments.at_least("a missed one", 1, 2, experiments.says("MT-FTL", "predicted <so>"), "found so")]
    results = Results("scaling", "t", "q", "c", True, {}, samples, [c.record() for c in checks],
                      experiment.table(samples))
    write(experiment, results, tmp_path / "scaling")
    page = tmp_path / "report.html"
    page.write_text(report.page(tmp_path))
    assert not re.search(r"""(src|href)=["']?(https?:|//|file:)""", page.read_text())
    shot = tmp_path / "shot.png"
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,1600",
                           f"--user-data-dir={tmp_path}/profile", f"--screenshot={shot}", page.as_uri()],
                          capture_output=True, text=True, timeout=120)
    assert shot.exists(), done.stderr
    pixels = matplotlib.image.imread(shot)[:, :, :3].reshape(-1, 3)
    for colour in figures.COLOURS[:3]:
        near = abs(pixels - matplotlib.colors.to_rgb(colour)).max(axis=1) < 0.02
        assert near.sum() > 100, f"no line of colour {colour} on the screen"


def test_the_report_fits_a_phone(tmp_path: Path) -> None:
    """At 390 pixels nothing runs out of the page, except within what scrolls by itself."""
    (tmp_path / "report.html").write_text(report.page(RESULTS))
    (tmp_path / "phone.html").write_text(
        '<iframe id="page" src="report.html" width="390" height="800"></iframe><p id="said"></p><script>'
        'page.onload = () => { said.textContent = "wide " + page.contentDocument.documentElement.scrollWidth; }'
        '</script>')
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                           f"--user-data-dir={tmp_path}/profile", "--dump-dom", (tmp_path / "phone.html").as_uri()],
                          capture_output=True, text=True, timeout=120)
    width = re.search(r"wide (\d+)", done.stdout)
    assert width and int(width[1]) <= 390, done.stdout + done.stderr


def test_readme_shows_the_numbers_of_the_results(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    assert report.update_readme(text, RESULTS) == text, "scripts/lab report --readme brings it up to date"
    mounts = json.loads((RESULTS / "mount/results.json").read_text())["samples"]
    slowest = max(s["us per TiB"] for s in mounts if s["mount"] == "clean")
    assert f"mounts in {slowest / 1e6:.0f} s a TiB" in text
    samples = [{"profile": p, "line": line, "users": 8, "iops": iops}
               for p in ("dram", "tlc") for line, iops in (("single", 80_000), ("multi", 480_000), ("raw", 500_000))]
    (tmp_path / "scaling").mkdir()
    (tmp_path / "scaling/results.json").write_text(json.dumps({"samples": samples}))
    shown = report.update_readme(text, tmp_path)
    assert all(number in shown for number in ("**480k**", "**6.0x**", "**96%**"))
    assert " to " not in shown.split("<!--")[1]
    assert report.update_readme(shown, RESULTS) == text
    for sample in samples:
        sample |= {"iops_least": sample["iops"] - 5000, "iops_most": sample["iops"]}
    (tmp_path / "scaling/results.json").write_text(json.dumps({"samples": samples}))
    shown = report.update_readme(text, tmp_path)
    assert "| **480k** (475k to 480k) |" in shown and "80k (75k to 80k) | **6.0x** |" in shown
    assert report.update_readme(shown, RESULTS) == text
    samples[3] |= {"iops": 20, "iops_least": 10, "iops_most": 2000}     # single, on TLC flash
    (tmp_path / "scaling/results.json").write_text(json.dumps({"samples": samples}))
    assert "20 (10 to 2.0k) | at least **238x** |" in report.update_readme(text, tmp_path)


def test_the_page_of_results_shows_spreads(tmp_path: Path) -> None:
    text = (ROOT / "docs/lab/experiments.md").read_text()
    assert report.update_spreads(text, RESULTS) == text, "scripts/lab report --readme brings it up to date"
    (tmp_path / "peers").mkdir()
    sample = {"line": "mtftl", "iops": 2000, "iops_least": 1000, "iops_most": 3000}
    (tmp_path / "peers/results.json").write_text(json.dumps({"samples": [sample]}))
    assert " | 2.0 | 1.0 to 3.0 |\n" in report.update_spreads(text, tmp_path)


def test_the_pages_of_experiments_are_whole_and_fresh() -> None:
    """One an experiment, and the index leads to each."""
    texts = {path.parent.name: path.read_text() for path in report.experiment_pages()}
    assert set(texts) >= set(experiments.names())
    for name in experiments.names():
        assert texts[name].startswith(f"# {name}\n") and f"<!-- found: {name} -->" in texts[name]
        measured = (RESULTS / name / "results.json").exists()
        assert (story.NOT_YET.capitalize() in texts[name]) != measured
        assert report.update_experiment(texts[name], RESULTS) == texts[name], "scripts/lab report --readme updates it"
    assert set(texts) - set(re.findall(r"\]\(([\w-]+)/README.md\)", (RESULTS / "README.md").read_text())) == set()
    missed = {"name": "m", "measured": 1.0, "bound": ">= 2", "pass": False, "why": "w", "kind": experiments.OURS,
              "analysis": "It was 1."}
    shown = report.found({"table": [["a", "b"], ["1", "2"]], "checks": [missed, {**missed, "pass": True}]})
    assert "| a | b |\n|---|---|\n| 1 | 2 |\n" in shown
    assert "1 of 2 checks hold: 1 of 2 predictions of our own." in shown
    assert "- m: 1, predicted >= 2. It was 1." in shown


def test_the_results_are_a_story() -> None:
    """Each experiment is in one chapter, with an answer of two sentences; its numbers are the results'."""
    told = [name for _, names in story.CHAPTERS for name in names]
    assert sorted(told) == sorted([*experiments.names(), *story.OTHERS])
    assert set(story.ANSWERS) == set(experiments.names())
    text = (RESULTS / "README.md").read_text()
    assert report.update_index(text, RESULTS) == text, "scripts/lab report --readme brings it up to date"
    for name in experiments.names():
        path = RESULTS / name / "results.json"
        if not path.exists():
            assert f"]({name}/README.md): {story.NOT_YET}\n" in text
            continue
        said = story.answer(name, json.loads(path.read_text())["samples"])
        assert len(re.findall(r"[.](?= |$)", said)) == 2 and "{" not in said, said
    samples = [{"a": "x", "n": 3}, {"a": "y", "n": 2}]
    assert story._TOKEN.sub("-", "{n .1f | a=x over a=y}") == "-"
    with pytest.raises(LabError, match="no sample has a=z"):
        story._sample(samples, "a=z")


def test_a_kvm_that_runs_nothing_costs_seconds_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def run(command: str, options: Options, *, accel: str) -> Result:
        waited.append(options.silence)
        raise LabError("it said nothing")

    for module in (base, accel):
        monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(machine, "run", run)
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert [accel.choose(), accel.choose()] == ["tcg", "tcg"]
    assert len(waited) == 1 and waited[0] <= 5


def test_a_run_in_virtual_time_is_recalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "KEPT", tmp_path)
    result = Result(0, None, "said", "console", {"a.json": b"\0\xff"}, 1.5, "digest", "virtual time", "state")
    outcome.keep(result)
    assert outcome.recall("digest") == result
    assert outcome.recall("other") is None
