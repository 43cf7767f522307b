# SPDX-License-Identifier: GPL-2.0
"""The simulator of policies: against what can be computed, against the kernel, and what its policies promise."""

import json
import os
import re
import shutil

import pytest
from mtlab.cmd import simulate as simulator
from mtlab.cmd.simulate import LEVELLING, simulate
from mtlab.util.base import LabError, output

# Of many small zones: an open one holds little back.
DRIVE = ("zones=512", "capacity=256", "lanes=4", "buffer_entries=0", "age=5", "writes=3")
FLASH = {"flash.size": "256M", "flash.block_pages": "16", "flash.erase_ns": "125000", "zoned.zone_size": "1M",
         "zoned.zone_capacity": "1M"}


def _cost(*words: str) -> float:
    return float(simulate(*DRIVE, *words)["amplification"])


@pytest.mark.parametrize("op", ["op=250", "op=400"])
def test_greedy_is_what_theory_says(op):
    """Uniform writes, one stream: the closed form of greedy collection, within 3%: open zones hold some room back."""
    found = simulate(*DRIVE, "age=8", op, "placement=hot-cold", "gc_policy=greedy", "lanes=1")
    assert found["amplification"] == pytest.approx(found["limit"], rel=0.03)


def test_better_than_before_where_loads_are_skewed():
    """By lives, and by cost and benefit: three tenths less on average for zipf, as much where all blocks are alike."""
    before, after = ("placement=hot-cold", "gc_policy=greedy"), ("placement=by-life", "gc_policy=cost-benefit")
    ratios = [_cost(f"load=zipf:{theta}", *after) / _cost(f"load=zipf:{theta}", *before)
              for theta in ("0.8", "0.99", "1.2", "1.4")]
    assert sum(ratios) / len(ratios) <= 0.7
    for load in ("hot:90/10", "hot:80/20", "shift:90/10"):
        assert _cost(f"load={load}", *after) <= 0.77 * _cost(f"load={load}", *before)
    assert _cost("load=uniform", *after) <= 1.01 * _cost("load=uniform", *before)


def test_nothing_beats_the_limit():
    """Whatever the load, perfect placement is better; to know how often each block is written comes closer."""
    for load in ("zipf:0.8", "zipf:1.2", "hot:90/10", "shift:80/20"):
        ours, known = (simulate(*DRIVE, f"load={load}", f"placement={name}") for name in ("by-life", "known"))
        assert 1 <= known["limit"] < known["amplification"] < 1.01 * ours["amplification"]


def test_limit_of_two_kinds():
    """Hot and cold blocks of which the cold are hardly written: all room is for the hot ones."""
    found = simulate(*DRIVE, "load=hot:99.9999/10")
    spare = 1 + (found["spare"] - 1) / 0.1
    uniform = simulate(*DRIVE, f"op={round(1000 - 1000 / 1.05)}")
    assert uniform["limit"] > 3
    # Room of ten times the hot blocks' own share: hardly anything is moved.
    assert spare > 3 and found["limit"] < 1.1


def test_wear_is_levelled():
    """Over a life with a hot half and one that is hardly written: nearly all zones are worn alike."""
    words = ("zones=64", "capacity=128", "buffer_entries=32", "age=0", "writes=1000", "load=hot:99/50")
    levelled, not_levelled = (simulate(*words, *more) for more in LEVELLING.values())
    assert levelled["wear"][2] <= 1.1
    assert not_levelled["wear"][2] > levelled["wear"][2]
    assert levelled["amplification"] <= 1.05 * not_levelled["amplification"]


def test_trace(tmp_path):
    """A trace of blocks, over and over: of ten blocks nothing is ever moved."""
    trace = tmp_path / "trace"
    trace.write_text("".join(f"{block}\n" for block in range(10)))
    found = simulate(*DRIVE, "wear_interval=0", f"load=trace:{trace}")
    assert "limit" not in found
    assert found["amplification"] < 1.01
    with pytest.raises(LabError, match="a trace tells no rates"):
        simulate(*DRIVE, f"load=trace:{trace}", "placement=known")


def test_each_checkout_has_its_own(tmp_path, monkeypatch):
    """Of other sources another simulator is built, though they are older than what is there."""
    ours = simulator.build()
    other = tmp_path / "target"
    shutil.copytree(simulator.SOURCE, other)
    policy = other / "policy/victim.c"
    policy.write_text(policy.read_text().replace('{ "greedy",', '{ "other",'))
    os.utime(policy, (0, 0))
    monkeypatch.setattr(simulator, "SOURCE", other)
    theirs = simulator.build()
    words = ("zones=64", "capacity=64", "age=1", "writes=1", "buffer_entries=0")
    assert theirs != ours and json.loads(output([theirs, *words, "gc_policy=other"]))["stored"]
    with pytest.raises(LabError):
        output([ours, *words, "gc_policy=other"])


def test_words_are_checked():
    """What is not understood is refused."""
    for word in ("zones", "zones=x", "load=zapf:1", "placement=best", "lanes=0", "hot=1"):
        with pytest.raises(LabError):
            simulate(word)


@pytest.mark.parametrize(("load", "fio", "within"), [
    ("uniform", "", 0.03),
    ("fio-zipf:1.2/4", "--random_distribution=zipf:1.2", 0.05),
])
def test_kernel_agrees(lab_run, load, fio, within):
    """What the target writes to flash for each stored block, in a guest."""
    random = ("fio --name=job --direct=1 --filename=/dev/mapper/ftl --ioengine=io_uring --iodepth=8 --bs=4k "
              f"--rw=randwrite --numjobs=4 --norandommap --time_based {fio} --output=/dev/null")
    result = lab_run(f"""set -e
mtftl format --force --op 25% /dev/nvme0n1 >/dev/null
mtftl open /dev/nvme0n1 ftl lanes=4 buffer_entries=256
fio --name=fill --direct=1 --filename=/dev/mapper/ftl --rw=write --bs=128k --output=/dev/null
{random} --runtime=6
dmsetup message ftl 0 reset_stats
{random} --runtime=3
dmsetup status ftl
""", clock="virtual", cpus=4, profile="femu", device=dict(FLASH), timeout=900)
    assert result.status == 0
    status = {name: int(value) for name, value in re.findall(r" ([a-z_]+) (\d+)(?= |$)", result.output)}
    kernel = 1 + status["flash_gc"] / status["flash_data"]
    found = simulate("zones=256", "capacity=256", "lanes=4", "buffer_entries=256", "age=6", "writes=4", f"load={load}")
    print(f"{load}: {kernel:.3f} in the kernel, {found['amplification']:.3f} simulated")
    assert kernel == pytest.approx(found["amplification"], rel=within)
