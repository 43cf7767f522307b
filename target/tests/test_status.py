# SPDX-License-Identifier: GPL-2.0
"""What `mtftl status` says of each condition: as the page about it shows, and as the schema has it."""

import json
import re
from typing import Any

from mtlab.build import target
from mtlab.util.base import ROOT

PAGE = ROOT / "docs/use/status.md"
SCHEMA = target.SOURCE / "tool/status.schema.json"
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "object": dict, "array": list}


def faults(value: Any, schema: dict[str, Any], place: str = "status") -> list[str]:
    """Where a value is not what a JSON schema says, as far as ours goes."""
    if not isinstance(value, TYPES[schema["type"]]):
        return [f"{place}: {value!r}, expected {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place}: {value!r}, expected one of {schema['enum']}"]
    if value == "" or (isinstance(value, int | float) and value < schema.get("minimum", value)):
        return [f"{place}: {value!r} is out of bounds"]
    if isinstance(value, list):
        return [f for n, one in enumerate(value) for f in faults(one, schema["items"], f"{place}[{n}]")]
    if not isinstance(value, dict):
        return []
    known = schema["properties"]
    return [*(f"{place}: no {key}" for key in schema.get("required", []) if key not in value),
            *(f"{place}: unknown {key}" for key in value if key not in known),
            *(f for key in value.keys() & known.keys() for f in faults(value[key], known[key], f"{place}.{key}"))]


def shown() -> dict[str, str]:
    """What the page shows: the text below `# mtftl status fast   (CONDITION)`, by the condition."""
    found = re.findall(r"^    # mtftl status fast +\((\S+)\)\n((?:    .*\n)+)", PAGE.read_text(), re.M)
    return {name: re.sub(r"^    ", "", text, flags=re.M) for name, text in found}


def rough(text: str) -> str:
    """Without numbers, which depend on the drive, and units, which depend on them."""
    text = re.sub(r"\d+(?:[.:-]\d+)*", "N", text)
    return re.sub(r"N (?:KiB|MiB|GiB|years|days|h|min|s|ms|us)\b", "N", text)


def test_status_has_advice_for_each_condition(run_script):
    output = run_script("status_has_advice_for_each_condition").output
    said = dict(re.findall(r"^@@ (\S+)\n(.*?)^@@=$", output, re.M | re.S))
    documents = {name: json.loads(said.pop(name)) for name in [*said] if name.endswith("-json")}
    modules = {name: said.pop(name) for name in [*said] if name.startswith("module")}
    assert {name: rough(text) for name, text in said.items()} == {name: rough(text) for name, text in shown().items()}
    for name, text in said.items():
        assert ("  advice " in text) == (name != "well"), text
        assert text.startswith("fast "), text

    assert len(documents) == 2
    schema = json.loads(SCHEMA.read_text())
    for document in documents.values():
        assert faults(document, schema) == []
    assert faults(documents["well-json"] | {"mode": 7, "frob": 1}, schema) != []
    assert documents["well-json"]["state"] == "well" and documents["well-json"]["conditions"] == []
    assert documents["well-json"]["mapped"] == 4000
    assert "worn" in [one["condition"] for one in documents["worn-json"]["conditions"]]
    smart = documents["worn-json"]["smart"]
    assert smart["used_percent"] == 93 and smart["seconds_left"] > 0

    for name, word in [("module-0.9", "older"), ("module-1.99", "newer")]:
        version = re.escape(name.partition("-")[2])
        assert re.fullmatch(rf"mtftl: the module dm-mtftl has version {version}, {word} than this tool's 1\.1: .*\n",
                            modules[name]), modules[name]
