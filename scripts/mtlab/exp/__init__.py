# SPDX-License-Identifier: GPL-2.0
"""The engine under scripts/experiments/, and what experiments share."""
