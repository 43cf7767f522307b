# SPDX-License-Identifier: GPL-2.0
"""The lab: builds the emulator, the kernels, the target and the guest, and runs commands in it.

Packages, highest first. Each imports only itself and those below it; `lab lint` checks that.
  cmd    the commands of scripts/lab
  exp    experiments: runs, samples, checks, figures
  run    one run of a guest: its options, QEMU's command line, its life, its result
  build  what a run needs: packages, kernels, the emulator, the target, the guest's archives
  util   folders, errors, locks, child processes, work side by side
"""
