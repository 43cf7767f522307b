# SPDX-License-Identifier: GPL-2.0
"""One declaration an option: command line and back, check and docs; and what a run is a function of."""

import argparse
from dataclasses import fields, replace
from pathlib import Path

import pytest
from mtlab.run import options
from mtlab.run.machine import RunPlan
from mtlab.run.options import Options
from mtlab.util.base import ROOT, LabError


def _parsed(*words: str, **chosen: tuple[str, ...]) -> Options:
    parser = argparse.ArgumentParser()
    options.add_options(parser, **chosen)
    return options.options_from(parser.parse_args(words))


def test_no_words_give_the_defaults() -> None:
    assert _parsed() == Options()


def test_words_come_back_as_what_they_say() -> None:
    found = _parsed("--cpus", "8", "--timeout", "1.5", "--no-module", "--device", "ms=16,nvme0.mdts=2", "--push", "a",
                    "b", "--pull", "x*", "y", "--qemu=-s", "--qemu=-S", "--memory-model", "server2", "--media", "m",
                    "--boot", "--with", "sqlite3", "xfsprogs/forky", "--before", "true")
    assert found == Options(cpus=8, timeout=1.5, module=False, device={"ms": "16", "nvme0.mdts": "2"},
                            push=[Path("a"), Path("b")], pull=["x*", "y"], qemu=["-s", "-S"], memory_model="server2",
                            media=Path("m"), boot=True, packages=["sqlite3", "xfsprogs/forky"], before="true")


def test_a_command_takes_some_of_them() -> None:
    assert _parsed("--cpus", "4", only=("cpus",)) == Options(cpus=4)
    with pytest.raises(SystemExit):
        _parsed("--memory", "1G", only=("cpus",))
    with pytest.raises(SystemExit):
        _parsed("--cpus", "4", without=("cpus",))


@pytest.mark.parametrize(("chosen", "why"), [
    ({"clock": "slow"}, "--clock slow: expected wall or virtual"),
    ({"profile": "no-such"}, "--profile no-such: no profile 'no-such': there are .*tlc"),
    ({"kernel": "no-such"}, "no kernel 'no-such': there are 6.12"),
    ({"push": [Path("/no/such")]}, "--push: there is no file /no/such"),
    ({"clock": "virtual", "host_root": True}, "--host-root: .* expected --clock wall"),
    ({"watch_every": 50}, "--watch-every 50: expected 10 to 60000, with --watch"),
    ({"watch": Path("/tmp/w"), "watch_every": 5}, "--watch-every 5: expected 10 to 60000"),
    ({"memory_model": "server"}, "--memory-model server: .* expected --clock virtual"),
    ({"schedule": 1}, "--schedule 1: .* expected --clock virtual"),
    ({"schedule": -1, "clock": "virtual"}, "--schedule -1: expected 0 to 9223372036854775807"),
    ({"schedule": 1 << 63, "clock": "virtual"}, "--schedule 9223372036854775808: expected 0 to"),
    ({"schedule": 1, "clock": "virtual", "kernel": "kcsan"}, "--schedule 1: .* expected another --kernel"),
    ({"schedule": 1, "clock": "virtual", "stall": 5}, "--schedule 1: .* expected no --stall and no --memory-model"),
    ({"changes": 1, "clock": "virtual"}, "--changes 1: expected --schedule, too"),
    ({"changes": 9, "schedule": 1, "clock": "virtual"}, "--changes 9: expected 0 to 8"),
    ({"changes": -1, "schedule": 1, "clock": "virtual"}, "--changes -1: expected 0 to 8"),
    ({"period": 5, "clock": "virtual"}, "--period 5: expected --schedule, too"),
    ({"period": 0, "schedule": 1, "clock": "virtual"}, "--period 0: expected 1 to 10000000"),
    ({"period": 10_000_001, "schedule": 1, "clock": "virtual"}, "--period 10000001: expected 1 to 10000000"),
    ({"before": "true"}, "--before true: .* expected --clock virtual"),
    ({"before": "true", "clock": "virtual", "media": Path("m")}, "--before true: .* expected no --media"),
    ({"before": "true", "clock": "virtual", "profile": "none"}, "--before true: .* expected another --profile"),
    ({"packages": ["a;b"]}, "--with: 'a;b': expected PACKAGE or PACKAGE/SUITE"),
    ({"drives": 2, "profile": "stock"}, "--drives 2: .* expected another --profile"),
    ({"drives": 2, "clock": "virtual", "before": "true"}, "--drives 2: .* expected no --before"),
    ({"drives": 9}, "--drives 9: expected 1 to 8"),
    ({"packages": ["sqlite3"], "host_root": True}, "--with: .* expected no --host-root"),
    ({"clock": "virtual", "memory_model": "server2", "cpus": 3}, "--cpus 3: server2 needs a multiple of 2"),
])
def test_what_cannot_be_is_refused_by_its_name(chosen: dict[str, object], why: str) -> None:
    with pytest.raises(LabError, match=why):
        options.check(Options(**chosen))  # type: ignore[arg-type]
    options.check(Options())


def test_docs_show_the_options() -> None:
    text = (ROOT / "docs/lab/guests.md").read_text()
    assert options.update_docs(text) == text, "scripts/lab report --readme brings it up to date"
    assert options.update_docs(text.replace("| 2G |", "| 3G |")) == text


def _plan(folder: Path) -> RunPlan:
    folder.mkdir()
    for name in ("bios", "tlc.cfg"):
        (folder / name).write_text(name)
    return RunPlan(boot=("bin-0", "6.12-0", "base-0.cpio", "quiet", "2", "2G"), firmware=(folder / "bios",),
                   own=b"archive", clock=("-icount", "shift=0"), making=("-icount", "shift=0,quantum=1000"),
                   device=("-set", "device.ns0.flash.media=/media"), described=(folder / "tlc.cfg",),
                   may_be_saved=True)


def test_a_run_is_known_by_its_inputs(tmp_path: Path) -> None:
    """All of them, and nothing else: results that are kept stay valid as long as these two digests stay."""
    plan = _plan(tmp_path / "a")
    assert (plan.key, plan.inputs) == ("62f81885736eb8a4", "810298d919d7b410")
    assert _plan(tmp_path / "b").inputs == plan.inputs
    (tmp_path / "other").write_text("other")
    for one in fields(RunPlan):
        value = getattr(plan, one.name)
        other = {bytes: b"other", bool: False, type(None): replace(plan, own=b"first"),
                 tuple: (tmp_path / "other",) if value and isinstance(value, tuple)
                 and isinstance(value[0], Path) else ("other",)}[type(value)]
        changed = replace(plan, **{one.name: other})
        assert changed.inputs != plan.inputs, one.name
        assert (changed.key != plan.key) == (one.name in ("boot", "firmware", "making", "may_be_saved")), one.name


def test_a_run_from_scratch_has_no_saved_state(tmp_path: Path) -> None:
    assert replace(_plan(tmp_path / "a"), may_be_saved=False).key == ""
