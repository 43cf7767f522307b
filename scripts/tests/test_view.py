# SPDX-License-Identifier: GPL-2.0
"""`lab view`: the numbers on the page are those of the streams, in a real browser, at both widths.

view/flash and view/ftl are what view/record leaves, each second line of it: a fill, overwrites with GC at work, reads
and writes, a discard. What the page must show is computed here once more, from the same lines.
"""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from mtlab.cmd import view
from mtlab.exp import counters
from mtlab.run import browser, qemu
from mtlab.run.options import Options
from mtlab.util.base import ROOT, LabError

RECORDED = Path(__file__).parent / "view"
WIDTHS = (1280, 390)
INSTANTS = (1.6, 2.55, 3.2, 3.8)        # a fill, GC at work, reads and writes, after a discard
NONE = "–"
COUNT, BYTES, TIMES = ("", "k", "M", "G"), ("B", "kB", "MB", "GB", "TB"), ("ns", "µs", "ms", "s")
Look = Mapping[str, Any]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    program = browser.find()
    if not program:
        pytest.skip(f"no browser, expected one of {', '.join(browser.NAMES)}")
    with browser.start(program, tmp_path_factory.mktemp("browser")) as started:
        yield started


def _amount(value: float | None, units: Sequence[str]) -> str:
    """Three digits and a unit; a tie is rounded up."""
    if value is None:
        return NONE
    exact, unit = Decimal(value), 0
    while True:
        shown = exact
        if exact:
            shown = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), ROUND_HALF_UP)
        if abs(shown) < 1000 or unit + 1 == len(units):
            break
        exact, unit = Decimal(value / 1000 ** (unit + 1)), unit + 1
    text = f"{shown:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {units[unit]}".strip()


def _per_second(value: float) -> str:
    return f"{_amount(value, COUNT)}/s"


def _fixed(value: float | None, places: int) -> str:
    return NONE if value is None else str(Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def _quoted(look: Look, before: Look, share: float) -> str:
    """A percentile by counting the classes of the histogram; not if fewer than 20 took longer."""
    counts = [b - a for a, b in zip(before["latency"], look["latency"], strict=True)]
    total = sum(counts)
    if round(total * (1 - share), 6) < 20:
        return "too few"
    wanted, seen = math.ceil(round(share * total, 6)), 0
    for bound, count in zip(look["latency_ns"], counts, strict=False):
        seen += count
        if seen >= wanted:
            return _amount(bound, TIMES)
    return "off the scale"


def _pair(looks: Sequence[Look], at: float, span: float) -> tuple[Look, Look]:
    """The look of an instant and the last one that is `span` older; 0: the one before."""
    upto = [look for look in looks if look["at"] <= at]
    older = [look for look in upto[:-1] if look["at"] <= upto[-1]["at"] - span] or upto[:1]
    return (older[-1] if span else upto[-2]), upto[-1]


def _of_target(before: Look, now: Look) -> dict[str, str]:
    grown, seconds = counters.grown(before, now), now["at"] - before["at"]
    rate = {key: value / seconds for key, value in grown.items()}
    waf = sum(grown[key] for key in counters.FLASH) / grown["written"] if grown["written"] else None
    other = now["zones"] - sum(now[key] for key in ("free", "open", "full", "resetting", "bad"))
    shown = {
        "users-read": _amount(4096 * rate["read"], BYTES) + "/s",
        "users-written": _amount(4096 * rate["written"], BYTES) + "/s",
        "users-read-blocks": _per_second(rate["read"]), "users-written-blocks": _per_second(rate["written"]),
        "users-trimmed": _per_second(rate["trimmed"]), "users-flushes": _per_second(rate["flushes"]),
        "users-waits": _per_second(rate["waits"]),
        "latency-commands": _per_second((sum(now["latency"]) - sum(before["latency"])) / seconds),
        "latency-p50": _quoted(now, before, .5), "latency-p99": _quoted(now, before, .99),
        "latency-p999": _quoted(now, before, .999),
        "latency-reads": _amount(grown["read_ns"] / grown["reads"] if grown["reads"] else None, TIMES),
        "latency-writes": _amount(grown["write_ns"] / grown["writes"] if grown["writes"] else None, TIMES),
        "target-mode": now["mode"], "target-gc": now["gc"], "target-waf": _fixed(waf, 2),
        "target-waf-all": _fixed(now["waf"], 2), "target-moved": _per_second(rate["flash_gc"]),
        "target-victims": _per_second(rate["victims"]), "target-free": f"{now['free']:.0f}, {now['low_water']:.0f}",
        "target-wear": f"{now['wear_least']:.0f} to {now['wear_most']:.0f}",
        "lanes-mean": _fixed(100 * sum(now["fill"]) / len(now["fill"]) / now["entries"], 0) + "%"}
    shown |= {f"zones-{n}": f"{count:.0f}" for n, count in enumerate(
        (now["bad"], other, now["resetting"], now["full"], now["open"], now["free"]))}
    shown |= {"rates-0": shown["users-written"], "rates-1": shown["users-read"], "waf-0": shown["target-waf"],
              "waf-1": shown["target-waf-all"], "gc-0": shown["target-moved"]}
    return shown | {f"latency-{n}": shown[f"latency-{name}"].replace("too few", NONE)
                    for n, name in enumerate(("p50", "p99", "p999"))}


def _of_drive(before: Look, now: Look) -> dict[str, str]:
    seconds = now["at"] - before["at"]

    def rate(*keys: str) -> float:
        return sum(float(now[key] - before[key]) for key in keys) / seconds

    def command(*kinds: str) -> str:
        return _per_second(sum(now["commands"][kind] - before["commands"][kind] for kind in kinds) / seconds)

    busy = sum(b["busy_ns"] - a["busy_ns"] for a, b in zip(before["dies"], now["dies"], strict=True))
    written = rate("written_bytes")
    mean = _fixed(100 * busy / len(now["dies"]) / (seconds * 1e9), 0) + "%"
    return {"drive-reads": command("read"), "drive-writes": command("write", "append"),
            "drive-flushes": command("flush"), "drive-resets": command("reset"),
            "drive-cells": _per_second(rate("reads")), "drive-erases": _per_second(rate("erases")),
            "drive-programs": _per_second(rate("programs_full", "programs_padded", "programs_finish")),
            "drive-waf": _fixed(rate("programmed_bytes") / written if written else None, 2),
            "drive-buffer": _amount(now["buffer_used"], BYTES), "drive-busy": mean, "dies-mean": mean,
            "drive-0": _amount(rate("programmed_bytes"), BYTES) + "/s", "drive-1": _amount(written, BYTES) + "/s",
            "drive-2": _amount(rate("read_bytes"), BYTES) + "/s"}


def _expected(folder: Path, at: float, span: float = 0) -> dict[str, str]:
    """What the streams say of an instant, by the id of the number on the page."""
    drive = [json.loads(line) for line in (folder / "flash").read_text().splitlines()]
    drive = [{**look, "at": look["now_ns"] / 1e9} for look in drive]
    target = counters.looks((folder / "ftl").read_bytes())
    return _of_target(*_pair(target, at, span)) | _of_drive(*_pair(drive, at, span))


# All that the page says in numbers: of an instant, and beside each chart.
_SHOWN = """Object.fromEntries([...document.querySelectorAll('dd, figcaption b')].filter((x) => !x.hidden)
    .map((x) => [x.id, x.textContent.trim()]))"""


def _saved(folder: Path, to: Path, change: Callable[[str], str] = str) -> str:
    to.write_text(change(view.page(folder, live=False)))
    return to.as_uri()


def _wrong(chromium: browser.Browser, folder: Path, at: float, span: float = 0) -> dict[str, tuple[str | None, str]]:
    """Which numbers differ from the streams': what is shown and what is right."""
    shown, right = chromium.value(_SHOWN), _expected(folder, at, span)
    assert shown.keys() == right.keys()
    return {key: (shown[key], right[key]) for key in right if shown[key] != right[key]}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_numbers_on_the_page_are_the_streams(chromium: browser.Browser, tmp_path: Path, width: int) -> None:
    for at in INSTANTS:
        chromium.open(_saved(RECORDED, tmp_path / "run.html") + f"#t={at}", width)
        assert _wrong(chromium, RECORDED, at) == {}
    busiest = _expected(RECORDED, INSTANTS[1])
    assert busiest["latency-p99"].endswith(" ms") and busiest["target-gc"] == "active"
    for choice, span in (("1", 1), ("all", math.inf)):
        chromium.value(f"$('span').value = '{choice}', $('span').dispatchEvent(new Event('change'))")
        assert _wrong(chromium, RECORDED, at, span) == {}
    assert chromium.value("innerWidth") == width


@pytest.mark.parametrize(("part", "instead", "ids"), [
    ("x.written * BLOCK)]", "x.written * 4000)]", {"users-written"}),
    ("[0.5, 0.99, 0.999]", "[0.5, 0.9, 0.999]", {"latency-p99", "latency-1"}),
    ('["free", "teal", (x) => x.now.free]', '["free", "teal", (x) => x.now.free + 1]', {"zones-5"}),
    ("die.busy_ns - before.dies[n].busy_ns", "die.busy_ns - before.dies[0].busy_ns", {"drive-busy", "dies-mean"})])
def test_one_wrong_number_is_noticed(chromium: browser.Browser, tmp_path: Path, part: str, instead: str,
                                     ids: set[str]) -> None:
    def change(page: str) -> str:
        assert page.count(part) == 1
        return page.replace(part, instead)

    found: set[str] = set()
    for at in INSTANTS:
        chromium.open(_saved(RECORDED, tmp_path / "run.html", change) + f"#t={at}", 1280)
        found |= _wrong(chromium, RECORDED, at).keys()
    assert found == ids


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_and_needs_nothing_else(chromium: browser.Browser, tmp_path: Path, width: int,
                                              dark: bool) -> None:
    address = _saved(RECORDED, tmp_path / "run.html")
    assert not re.search(r"(?:src|href)=\"(?!data:)|@import|url\(", (tmp_path / "run.html").read_text())
    chromium.open(address, width, dark=dark)
    assert chromium.value("performance.getEntriesByType('resource').length") == 0
    chromium.value("$('of-dies').open = $('of-lanes').open = true")
    chromium.until("document.querySelectorAll('table').length === 2")
    assert chromium.value("document.documentElement.scrollWidth") <= width
    assert chromium.value("[...document.querySelectorAll('.scroll')].every((x) => x.scrollWidth <= x.clientWidth)")
    cut_off = """[...document.querySelectorAll('dt, dd, h2, label, .key, button')].filter((x) => {
        const box = x.getBoundingClientRect(); return box.right > innerWidth || box.left < 0; }).length"""
    assert chromium.value(cut_off) == 0
    # Text stands out from what is behind it, by WCAG's measure.
    contrast = """(() => {
        const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
            .map((x) => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)
            .reduce((sum, x, n) => sum + x * [.2126, .7152, .0722][n], 0);
        const of = (text, behind) => { const both = [getComputedStyle(text).color,
            getComputedStyle(behind).backgroundColor].map(light).sort((a, b) => b - a);
            return (both[0] + .05) / (both[1] + .05); };
        return Math.min(...[...document.querySelectorAll('dt, dd, h2, .key')].map((x) =>
            of(x, x.closest('article, figure'))), of($('state'), document.body)); })()"""
    assert chromium.value(contrast) >= 4.5


def test_each_die_and_lane_has_its_row(chromium: browser.Browser, tmp_path: Path) -> None:
    at = INSTANTS[1]
    chromium.open(_saved(RECORDED, tmp_path / "run.html") + f"#t={at}", 1280)
    chromium.value("$('of-dies').open = $('of-lanes').open = true")
    chromium.until("document.querySelectorAll('table').length === 2")
    rows = "[...document.querySelectorAll('#{} tbody tr')].map((row) => [...row.cells].map((x) => x.textContent))"
    before, now = _pair([{**look, "at": look["now_ns"] / 1e9} for look in map(
        json.loads, (RECORDED / "flash").read_text().splitlines())], at, 0)
    seconds = now["at"] - before["at"]
    dies = {}
    for n, (a, b) in enumerate(zip(before["dies"], now["dies"], strict=True)):
        dies[f"{n % 4}.{n // 4}"] = [_fixed(100 * (b["busy_ns"] - a["busy_ns"]) / (seconds * 1e9), 0) + "%", *(
            _per_second((b[key] - a[key]) / seconds) for key in ("reads", "programs", "erases")),
            _amount(b["wait_max_ns"], TIMES)]
    shown = chromium.value(rows.format("of-dies"))
    assert [row[0] for row in shown] == sorted(dies) and {row[0]: row[1:] for row in shown} == dies
    target = _pair(counters.looks((RECORDED / "ftl").read_bytes()), at, 0)[1]
    assert chromium.value(rows.format("of-lanes")) == [
        [str(n), str(used), "256", _fixed(100 * used / 256, 0) + "%"] for n, used in enumerate(target["fill"])]


def test_the_heat_map_is_as_dark_as_the_dies_are_busy(chromium: browser.Browser, tmp_path: Path) -> None:
    """The cells of one look, by their colours."""
    chromium.open(_saved(RECORDED, tmp_path / "run.html"), 1280)
    cells = """(() => {
        const chart = CHARTS[0], found = inView(chart), rows = chart.order(found[0]), wrong = [];
        const pen = chart.canvas.getContext('2d'), tall = 13, right = chart.canvas.width - RIGHT;
        for (const step of found) {
            const x = LEFT + ((step.from + step.to) / 2 - view.from) / (view.to - view.from) * (right - LEFT);
            rows.forEach((n, row) => {
                const [r, g, b] = pen.getImageData(Math.round(x), TOP + row * tall + 6, 1, 1).data;
                if (`rgb(${r} ${g} ${b})` !== ramp()[Math.round(64 * step.busy[n])]) wrong.push([step.from, n]);
            });
        }
        return [found.length * rows.length, wrong];
    })()"""
    looks = len((RECORDED / "flash").read_text().splitlines())
    assert chromium.value(cells) == [(looks - 1) * 16, []]


def test_a_replay_goes_at_any_speed(chromium: browser.Browser, tmp_path: Path) -> None:
    chromium.open(_saved(RECORDED, tmp_path / "run.html") + "#t=1.5", 1280)
    for speed, ms, at in ((1, 100, 1.6), (.01, 1000, 1.61), (20, 40, 2.41)):
        chromium.value(f"$('speed').value = {speed}, advance({ms})")
        assert chromium.value("view.at") == pytest.approx(at)
        assert _wrong(chromium, RECORDED, at) == {}
    # From the end it begins anew, and it stops there.
    assert chromium.value("goTo(view.last), $('speed').value = 1000, $('play').click(), "
                          "[view.playing, view.at === view.first, $('play').textContent]") == [True, True, "Pause"]
    chromium.until("!view.playing")
    assert chromium.value("[view.at === view.last, $('play').textContent]") == [True, "Play"]


def _halves(name: str) -> tuple[bytes, bytes]:
    """A stream in two parts; the first ends in the middle of a line."""
    data = (RECORDED / name).read_bytes()
    cut = data.index(b"\n", len(data) // 2) + 300
    return data[:cut], data[cut:]


def test_a_run_is_followed_while_it_goes_on(chromium: browser.Browser, tmp_path: Path) -> None:
    """Lines come in pieces; then another run begins in the same folder."""
    for name in view.STREAMS:
        (tmp_path / name).write_bytes(_halves(name)[0])
    whole = [len((RECORDED / name).read_text().splitlines()) for name in view.STREAMS]
    with view.server(tmp_path, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": .05})
        thread.start()
        try:
            chromium.open(f"http://{view.ADDRESS}:{serving.server_address[1]}/", 1280)
            chromium.until("flash.looks.length > 9 && ftl.looks.length > 9")
            assert chromium.value("flash.looks.length") < whole[0] - 9
            for name in view.STREAMS:
                with open(tmp_path / name, "ab") as f:
                    f.write(_halves(name)[1])
            chromium.until(f"flash.looks.length === {whole[0]} && ftl.looks.length === {whole[1]} && "
                           "view.at === view.last && $('clock').textContent === `${view.at.toFixed(3)} s`")
            assert _wrong(chromium, RECORDED, math.inf) == {}
            for name in view.STREAMS:
                lines = (RECORDED / name).read_bytes().splitlines(keepends=True)
                (tmp_path / name).write_bytes(b"".join(lines[:3]))
            chromium.until("flash.looks.length === 3 && ftl.looks.length <= 3 && view.at === view.last && "
                           "$('clock').textContent === `${view.at.toFixed(3)} s`")
        finally:
            serving.shutdown()
            thread.join()


@contextlib.contextmanager
def _followed(chromium: browser.Browser, folder: Path, *, until: str) -> Iterator[None]:
    """A page that follows a folder, once a condition holds. Within the block its next question waits."""
    with view.server(folder, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": .05})
        thread.start()
        try:
            chromium.open(f"http://{view.ADDRESS}:{serving.server_address[1]}/", 1280)
            chromium.until(until)
            chromium.value("""(() => { const ask = fetch, held = new Promise((go) => { window.go = go; });
                window.fetch = (...words) => { window.held = true; return held.then(() => ask(...words)); }; })()""")
            chromium.until("window.held")
            yield
        finally:
            serving.shutdown()
            thread.join()


def _begin(folder: Path, looks: Mapping[str, bytes]) -> None:
    """What a run with --watch leaves that has come so far."""
    qemu.watch_arguments(Options(watch=folder))
    for name, text in looks.items():
        (folder / name).write_bytes(text)


def test_a_run_that_has_said_more_than_the_one_before_is_another_run(chromium: browser.Browser,
                                                                     tmp_path: Path) -> None:
    """A page in the background asks once a minute: its first question to the second run finds more than it has."""
    lines = {name: (RECORDED / name).read_bytes().splitlines(keepends=True) for name in view.STREAMS}
    _begin(tmp_path, {name: b"".join(found[:3]) for name, found in lines.items()})
    with _followed(chromium, tmp_path, until="flash.looks.length === 3"):
        _begin(tmp_path, {name: b"".join(found[5:]) for name, found in lines.items()})
        chromium.value("go()")
        chromium.until(f"flash.looks.length === {len(lines['flash']) - 5} && ftl.rest === '' && "
                       "$('clock').textContent === `${view.last.toFixed(3)} s`")
        assert _wrong(chromium, tmp_path, math.inf) == {}


@pytest.mark.parametrize("change", [lambda look: {**look, "dies": look["dies"] * 2},
                                    lambda look: {**look, "ftl": {"host": 0, "moved": 0, "trimmed": 0}}],
                         ids=["more dies", "an FTL of its own"])
def test_a_run_on_another_drive_is_followed(chromium: browser.Browser, tmp_path: Path,
                                            change: Callable[[Look], Look]) -> None:
    """Of streams that name no run, as a QEMU of one's own leaves them."""
    looks = [json.loads(line) for line in (RECORDED / "flash").read_text().splitlines()]
    first = "".join(json.dumps(look) + "\n" for look in looks[:9])
    (tmp_path / "flash").write_text(first)
    with _followed(chromium, tmp_path, until="flash.looks.length === 9"):
        filler = " " * len(first) + "\n"
        (tmp_path / "flash").write_text(filler + "".join(json.dumps(change(look)) + "\n" for look in looks[10:12]))
        chromium.value("go()")
        chromium.until("flash.looks.length === 2")
        with open(tmp_path / "flash", "a") as f:
            f.write(json.dumps(change(looks[12])) + "\n")
        chromium.until("flash.looks.length === 3 && $('clock').textContent === `${view.last.toFixed(3)} s`")


def test_what_is_missing_is_said(chromium: browser.Browser, tmp_path: Path) -> None:
    """Streams of `lab top`'s test, without latencies; a target that was closed; and no target at all."""
    chromium.open(_saved(RECORDED.with_name("top"), tmp_path / "run.html"), 390)
    shown = chromium.value(_SHOWN)
    assert [shown[key] for key in ("latency-p50", "latency-commands", "target-gc")] == [NONE, NONE, "idle"]
    (tmp_path / "flash").write_bytes((RECORDED / "flash").read_bytes())
    chromium.open(_saved(tmp_path, tmp_path / "run.html"), 390)
    assert "The target is not open" in chromium.value("$('state').textContent")
    assert chromium.value(_SHOWN)["users-written"] == NONE
    assert "nothing was recorded" in chromium.value("$('chart-zones').getAttribute('aria-label')")
    lines = (RECORDED / "ftl").read_text().splitlines(keepends=True)
    again = re.sub(r"^\S+", lambda at: f"{float(at[0]) + 3:.6f}", "".join(lines), flags=re.M)
    (tmp_path / "ftl").write_text("".join([*lines, "4.0 No devices found\n", again]))
    chromium.open(_saved(tmp_path, tmp_path / "run.html") + "#t=4", 390)
    assert chromium.value(_SHOWN)["target-gc"] == NONE
    assert chromium.value("steps(ftl, ftlBetween).every((x) => x.read >= 0 && x.written >= 0)") is True


def test_the_server_gives_the_two_streams_and_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "flash").write_bytes(b"0123456789")
    (tmp_path / "secret").write_text("no")
    with view.server(tmp_path, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": .05})
        thread.start()

        def ask(path: str) -> tuple[int, bytes]:
            try:
                with urllib.request.urlopen(f"http://{view.ADDRESS}:{serving.server_address[1]}/{path}") as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as e:
                return e.code, e.read()

        try:
            assert ask("flash?from=7") == (200, b"789") and ask("flash") == (200, b"0123456789")
            assert ask("flash?from=10") == (200, b"") and ask("flash?from=11") == (416, b"")
            for path in ("secret", "ftl", "flash?from=-1", "flash?from=x", "../etc/passwd", "%2e%2e/secret"):
                assert ask(path)[0] == 404
        finally:
            serving.shutdown()
            thread.join()


def test_a_page_holds_whole_lines_and_no_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<b>"
    folder.mkdir()
    (folder / "flash").write_text('{"a":"</script><!--<script>@FTL@"}\n{"a-part":')
    page = view.page(folder, live=False)
    assert '{"a":"\\u003c/script>\\u003c!--\\u003cscript>@FTL@"}' in page and "a-part" not in page
    assert "&lt;b&gt;" in page and "<b></h1>" not in page


def test_a_folder_without_streams_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="expected the folder of `lab run --watch`"):
        view.check(tmp_path)
    done = subprocess.run([sys.executable, ROOT / "scripts/lab", "view", tmp_path, "--save", tmp_path / "x.html"],
                          capture_output=True, text=True, env=os.environ)
    assert done.returncode and "neither flash nor ftl is there" in done.stderr and not (tmp_path / "x.html").exists()
