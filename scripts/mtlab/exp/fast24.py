# SPDX-License-Identifier: GPL-2.0
"""What the artifact of "We Ain't Afraid of No File Fragmentation" (FAST '24) prints, for the experiments on it."""

from .experiments import Why, says
from .sources import ARTIFACT

# MB/s (of 2^20 bytes): without its approach, with it.
PRINTED = {"contiguous": (2174.53, 2174.53), "append worst": (397.26, 2126.48), "append random": (1470.01, 2063.64),
           "overwrite worst": (398.789, 2057.91), "overwrite random": (1487.34, 2069.28),
           "sqlite contiguous": (870.044, 870.044), "sqlite": (531.073, 849.64),
           "fileserver contiguous": (2739.8, 2739.8), "fileserver": (2149.4, 2611.8),
           "fileserver small contiguous": (2776.3, 2776.3), "fileserver small": (1721.0, 2099.3)}
SERVERS = {32: "fileserver", 16: "fileserver small"}        # by KiB of an append
LOADS = ("sqlite", *SERVERS.values())                       # that are no hypothetical ones


def line(name: str, hinted: bool) -> Why:
    """The line that the artifact's program prints."""
    words = name.replace("small", "").split()
    load = "fileserver-small" if "small" in name else words[0]
    value = f"{PRINTED[name][hinted]:g} MB/s"
    if name == "contiguous":
        return says(ARTIFACT, f"Contiguous file: {value}")
    if name.endswith("contiguous"):
        return says(ARTIFACT, f"{load} contiguous: {value}")
    what = f"{load} Append" if name in LOADS else name.title()
    return says(ARTIFACT, f"{what} {'with' if hinted else 'without'} Approach: {value}")
