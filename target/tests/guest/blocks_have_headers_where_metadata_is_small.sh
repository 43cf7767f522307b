#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With 8 bytes of metadata a block headers are in blocks, and nothing else can be asked for.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=8

set -e
. ./guest.sh

drive=/dev/nvme0n1
mtftl format $drive > said
fails grep metadata said
fails mtftl format --force --headers metadata $drive > said 2>&1
grep '8 bytes of metadata a block, expected 16 to 128' said
fails mtftl format --force --headers sideways $drive > said 2>&1
grep 'expected auto, blocks or metadata' said
dmsetup create t --table "$(table $drive)"
dmsetup remove t
