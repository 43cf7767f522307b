# SPDX-License-Identifier: GPL-2.0
"""What every other package uses; it knows nothing of guests."""
