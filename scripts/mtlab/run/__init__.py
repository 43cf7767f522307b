# SPDX-License-Identifier: GPL-2.0
"""One run of a guest, from its options to its result."""
