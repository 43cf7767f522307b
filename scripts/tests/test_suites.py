# SPDX-License-Identifier: GPL-2.0
"""The peers' suites: how their words are read, and that what the docs say of them is what was found."""

import json
from pathlib import Path

import pytest
from mtlab.build import debian, kernels
from mtlab.cmd import suites
from mtlab.cmd.suites import SUITES, Outcome
from mtlab.run import failure, machine
from mtlab.run.options import Options
from mtlab.run.outcome import Result
from mtlab.run.testing import LabRun
from mtlab.util.base import ROOT, LabError

FIO = """Running test 01 ... PASS
Running test 02 ... FAIL
Running test 16 ... SKIP    /dev/x does not have 1 conventional zones
Running test 33 ... """
BLKTESTS = """zbd/002 => nvme0n1 (report zone and reset)
    runtime    ...
zbd/002 => nvme0n1 (report zone and reset)               [passed]
    runtime    ...  0.5s
zbd/005 => nvme0n1 (write to unopened zones)
    runtime    ...
zbd/005 => nvme0n1 (write to unopened zones)             [failed]
    runtime    ...  1.5s
    --- tests/zbd/005.out
    +++ logs/nvme0n1/zbd/005.out.bad
zbd/007 => nvme0n1 (zone mapping)                        [not run]
    /dev/nvme0n1 is not a logical device
block/005 => nvme0n1 (switch schedulers while doing IO)
    runtime    ...
"""
XFSTESTS = """generic/001         172s
generic/026        [not run] ext4 does not define maximum ACL count
generic/042        [failed, exit status 1]- output mismatch (see /a/place/generic/042.out.bad)
    -fpunch
    ...
    (Run 'diff -u /some/place/042.out /a/place/generic/042.out.bad'  to see the entire diff)
generic/050        """
NAMES = sorted(path.stem for path in suites.RESULTS.glob("*.json"))


def test_words_of_fio() -> None:
    assert SUITES["fio-zbd"].parse(FIO) == {
        "1": Outcome("pass"), "2": Outcome("fail"), "33": Outcome(""),
        "16": Outcome("skip", "/dev/x does not have 1 conventional zones")}


def test_words_of_blktests() -> None:
    assert SUITES["blktests"].parse(BLKTESTS) == {
        "zbd/002": Outcome("pass"), "block/005": Outcome(""),
        "zbd/005": Outcome("fail", "--- tests/zbd/005.out; +++ logs/nvme0n1/zbd/005.out.bad"),
        "zbd/007": Outcome("skip", "/dev/nvme0n1 is not a logical device")}


def test_words_of_xfstests() -> None:
    assert SUITES["xfstests-ext4"].parse(XFSTESTS) == {
        "generic/001": Outcome("pass"), "generic/050": Outcome(""),
        "generic/026": Outcome("skip", "ext4 does not define maximum ACL count"),
        "generic/042": Outcome("fail", "[failed, exit status 1]- output mismatch "
                               "(see 042.out.bad)\n    -fpunch\n    ...")}


def _result(text: str, kind: str = "") -> Result:
    wrong = failure.Failure(kind) if kind else None
    return Result(0, wrong, text, "", {}, 1, "", "")


def test_a_dead_guest_costs_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next guest begins behind the test in which the last one died."""
    scripts = []
    guests = [_result("Running test 01 ... PASS\nRunning test 02 ... ", "oops"), _result("Running test 03 ... PASS\n")]

    def boot(script: str, *_args: object, **_options: object) -> Result:
        scripts.append(script)
        return guests[len(scripts) - 1]

    monkeypatch.setattr(machine, "run", boot)
    monkeypatch.setattr(suites.accel, "choose", lambda: "tcg")         # else these guests would be asked about KVM
    suite = SUITES["fio-zbd"]
    parts = list(suites._guests(suite, Path("x"), suites.DEVICES["raw"], ["1", "2", "3"], Options()))
    assert {name: out.outcome for found, _ in parts for name, out in found.items()} == \
        {"1": "pass", "2": "oops", "3": "pass"}
    assert "for t in 1 2 3;" in scripts[0] and "for t in 3;" in scripts[1]


def test_explanations_stay_while_outcomes_do() -> None:
    suite = SUITES["fio-zbd"]
    first = {"1": Outcome("fail"), "10": Outcome("pass"), "2": Outcome("pass")}
    old = suites.merge(suites.merge({}, suite, "stock", first, {}), suite, "raw", first, {})
    assert [row["test"] for row in old["tests"]] == ["1", "2", "10"]
    assert [row["test"] for row in suites.to_explain(old)] == ["1"]
    old["tests"][0]["why"] = "because"
    same = suites.merge(old, suite, "raw", first, {})
    assert same["tests"][0]["why"] == "because"
    other = suites.merge(old, suite, "raw", first | {"1": Outcome("pass"), "2": Outcome("skip")}, {})
    assert "why" not in other["tests"][0]
    assert [row["test"] for row in suites.to_explain(other)] == ["1", "2"]


def test_a_missing_checkout_says_how_to_get_it() -> None:
    with pytest.raises(LabError, match="git clone .*blktests"):
        SUITES["blktests"].have(None)


def test_docs_show_the_outcomes() -> None:
    text = (ROOT / "results/suites/README.md").read_text()
    assert text == suites.update_page(text, ROOT / "results")
    assert all(f"<!-- suite: {name} -->" in text for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_are_whole_and_explained(name: str) -> None:
    results = json.loads((suites.RESULTS / f"{name}.json").read_text())
    against, ours = results["devices"]
    assert (against, ours) == SUITES[name].devices
    odd = suites.to_explain(results)
    assert [row["test"] for row in odd if not row.get("why")] == []
    assert [row["test"] for row in results["tests"] if row.get("why") and row not in odd] == []
    failed = {d: [row["test"] for row in results["tests"] if row[d] not in ("pass", "skip")] for d in (against, ours)}
    assert len(failed[ours]) <= len(failed[against]), failed


@pytest.mark.usefixtures("emulator_binary")
def test_zones_on_the_newest_kernel() -> None:
    """fio's first ones end as on the kernel of the results: written in order and at random, by one and by many."""
    wanted = [str(number) for number in range(1, 14)]
    debian.ensure(*SUITES["fio-zbd"].packages)
    outcomes, _ = suites.run(SUITES["fio-zbd"], "raw", None, wanted, kernels.CURRENT)
    kept = {row["test"]: row["raw"] for row in json.loads((suites.RESULTS / "fio-zbd.json").read_text())["tests"]}
    assert {name: out.outcome for name, out in outcomes.items()} == {name: kept[name] for name in wanted}


def test_the_hosts_root_is_seen_and_stays(lab_run: LabRun, tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.write_text("the host's\n")
    result = lab_run(f"cat {there}; echo changed >{there}; cat {there}; cp {there} ./out; modprobe null_blk && "
                     "ls /dev/nullb0", host_root=True, module=False, profile="none", pull=["out"])
    assert result.output.splitlines() == ["the host's", "changed", "/dev/nullb0"]
    assert result.files["out"] == b"changed\n"
    assert there.read_text() == "the host's\n"


def test_virtual_time_has_no_host_root() -> None:
    with pytest.raises(LabError, match="--clock wall"):
        machine.check(Options(clock="virtual", host_root=True))
