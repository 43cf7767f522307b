#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A victim was moved in part, and all that moves waited for programs: nothing else is there to
# wake them.
#
# clock: virtual
# cpus: 2
# profile: tlc
# timeout: 400
# device: small flash.program_ns=20000000 flash.suspend=on flash.buffer=0

set -e
. ./guest.sh

scattered
before=$(field victims t)
moved=$(field flash_gc t)
moves() { [ "$(field flash_gc t)" -gt $moved ]; }
dmsetup message t 0 gc
until_true 1 moves
dmsetup suspend --nolockfs --noflush t
fails gained $before
dmsetup resume t
until_true 2 gained $before
dmsetup remove t
mtftl check /dev/nvme0n1
