# SPDX-License-Identifier: GPL-2.0
"""The commands of docs/use and of the README for a real drive, as typed, on QEMU's plain zoned namespaces.

docs/use/first-drive.md has what each of its commands printed. To write it anew, run this file as a program. The clock
is the host's, because this drive's work takes the host's time.
"""

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import pytest
from mtlab.run import accel, machine, qemu
from mtlab.run.options import NONE, Options
from mtlab.run.testing import LabRun
from mtlab.util.base import ROOT

LOG = ROOT / "docs/use/first-drive.md"
SETTINGS = ",".join(f"{name}={value}" for name, value in qemu.STOCK_DEVICE.items())
# Each command's output is framed by its number and exit status.
TYPE = """set +e
while read -r command; do
	echo "@ $command"
	eval "$command" </dev/null >said 2>&1
	status=$?
	cat said
	echo "@ $status"
done <typed
"""


def options(folder: Path, typed: list[str]) -> dict[str, object]:
    """A guest with two zoned namespaces, and the commands that are to be typed in it."""
    (folder / "typed").write_text("".join(f"{command}\n" for command in typed))
    arguments = ["-device nvme,id=nvme0,serial=drive"]
    for number in (1, 2):
        with open(folder / f"media-{number}", "wb") as media:
            media.truncate(2 << 30)
        arguments += [f"-drive file={media.name},id=media{number},format=raw,if=none,cache=unsafe,discard=unmap",
                      f"-device nvme-ns,bus=nvme0,nsid={number},drive=media{number},{SETTINGS}"]
    return {"profile": NONE, "qemu": arguments, "push": [folder / "typed"], "boot": True,
            "timeout": 600}


def printed(text: str) -> list[tuple[str, str, int]]:
    """Each command with what it printed and its exit status."""
    return [(command, said, int(status)) for command, said, status in
            re.findall(r"^@ (.*)\n((?:(?!@ ).*\n)*)@ (\d+)$", text, re.M)]


def blocks(page: Path) -> list[str]:
    """The indented lines of a page."""
    return [line[4:] for line in page.read_text().splitlines() if line.startswith("    ")]


def of_the_log() -> list[str]:
    return [line[2:] for line in blocks(LOG) if line.startswith("# ")]


def of_a_page(page: str) -> list[str]:
    """The commands of the page's block that formats a drive, without comments, sudo and the installation."""
    text = (ROOT / page).read_text()
    block, = re.findall(r"(?:^    .*\n)*^    (?:sudo )?mtftl format .*\n(?:^    .*\n)*", text, re.M)
    lines = [re.sub(r"\s+#.*", "", line).strip().removeprefix("sudo ") for line in block.splitlines()]
    return [line for line in lines if not line.startswith("make ")]


def numberless(text: str) -> str:
    """A text in which UUIDs, checksums and numbers count for nothing, nor rows of the status: hosts may be slow."""
    text = re.sub(r"^( {4}fast works).*\n(?: {6}\w+ .*\n)*", r"\1", text, flags=re.M)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{64}\b", "#", text)
    return re.sub(r"\d+(\.\d+)?", "N", text)


def page_with(ran: list[tuple[str, str, int]]) -> str:
    """The page of the log, with what its commands print in place of what is there."""
    text = re.sub(r"^    (?!# ).*\n", "", LOG.read_text(), flags=re.M)
    for command, said, _ in ran:
        shown = "".join(f"    {line}\n" for line in said.splitlines())
        text = text.replace(f"    # {command}\n", f"    @ {command}\n{shown}", 1)
    return text.replace("    @ ", "    # ")


def test_the_log(lab_run: LabRun, tmp_path: Path) -> None:
    """Each command works, or says why not, and prints what the page has."""
    ran = printed(lab_run(TYPE, **options(tmp_path, of_the_log())).output)
    assert [command for command, _, _ in ran] == of_the_log()
    refused = [(command, said) for command, said, status in ran if status]
    assert [command for command, _ in refused] == ["mtftl close fast", "mtftl format /dev/nvme0n2"], refused
    assert numberless(page_with(ran)) == numberless(LOG.read_text())


@pytest.mark.parametrize("page", ["README.md", "docs/use/format-and-open.md"])
def test_a_page(page: str, lab_run: LabRun, tmp_path: Path) -> None:
    """Its commands work in the order that they stand there."""
    typed = of_a_page(page)
    assert {"format", "open", "close"} <= {command.split()[1] for command in typed}
    ran = printed(lab_run(TYPE, **options(tmp_path, typed)).output)
    assert [(command, status) for command, _, status in ran] == [(command, 0) for command in typed], ran


def main() -> None:
    """Write the page anew."""
    with machine.folder() as folder:
        chosen = Options(**options(folder, of_the_log()))       # type: ignore[arg-type]
        result = machine.run(TYPE, chosen, accel=accel.choose())
    LOG.write_text(page_with(printed(result.output)))


if __name__ == "__main__":
    main()
