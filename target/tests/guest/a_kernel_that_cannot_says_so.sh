#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Linux 6.1 frees a bio's payload, wherever it came from. So headers are in blocks there, and a
# drive with headers in metadata is refused.
#
# kernel: 6.1
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16

set -e
. ./guest.sh

drive=/dev/nvme0n1
mtftl format $drive > said
fails grep metadata said
dmsetup create t --table "$(table $drive)"
verify /dev/mapper/t --size=100% --io_size=40M --do_verify=1
dmsetup remove t
mtftl check $drive
mtftl format --force --headers metadata $drive > said
grep -q metadata said
mtftl check $drive
fails dmsetup create t --table "$(table $drive)"
dmesg | grep -q 'has 0 bytes of metadata a block, expected 16'
