# SPDX-License-Identifier: GPL-2.0
"""Makes what a run needs, once for each set of inputs."""
