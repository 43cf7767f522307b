# SPDX-License-Identifier: GPL-2.0
"""The lab: builds the emulator, the kernels, the target and the guest, and runs commands in it.

Modules, lowest first; each imports only those above it:
  base         folders, errors, progress lines, locks, child processes
  debian       Debian packages: the machine's own, and other suites' through a private apt
  kernels      kernel images, their modules and their headers
  emulator     QEMU with our files and patches
  target       dm-mtftl.ko and mtftl(8)
  cpio         the archive format that an initramfs is made of
  guest        what is inside the guest
  failure      what went wrong in a guest, read from its console
  machine      one run: QEMU's command line, its life and its end
  accel        does KVM boot a guest here?
  testing      pytest fixtures over all that
  cli          the command line
"""
