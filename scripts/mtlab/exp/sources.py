# SPDX-License-Identifier: GPL-2.0
"""The sources whose words experiments hold against what they measure (experiments.says)."""

MT_FTL = "MT-FTL"
REPORT = "the report on FEMU"
RESET = "FEMU's change"
TALK = "VSSIM's talk"
ARTIFACT = "the artifact"
MAKER = "X25-M's maker"
WARP = "WARP"

# Under which name each appeared.
WORKS = {
    MT_FTL: "J. Jhin, H. Kim, D. Shin: Optimizing Host-level Flash Translation Layer with Considering Storage Stack "
            "of Host Systems, IMCOM 2018",
    REPORT: "J. Moon: Internal Mechanisms and Performance Evaluation of FEMU SSD Emulator, 2024",
    RESET: "FEMU: the change that gives zone resets their latency",
    TALK: "J. Yoo et al.: VSSIM: Virtual Machine based SSD Simulator, slides",
    ARTIFACT: "Y. Jun et al.: We Ain't Afraid of No File Fragmentation, FAST 2024, its artifact",
    MAKER: "Intel: X25-M Mainstream SATA SSD, second generation, product brief",
    WARP: "I. Song et al.: Characterizing and Emulating FDP SSDs with WARP, FAST 2026, its abstracts",
}
# A bound that did not precede the first result that it judges.
KNOWN = "set when a result was known"
