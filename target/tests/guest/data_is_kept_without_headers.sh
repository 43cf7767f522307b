#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Written over and over with GC at work and read back; after a stop; and what was flushed, after a
# power cut.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16
# timeout: 400
# judge: test_metadata.py

set -e
. ./guest.sh

drive=/dev/nvme0n1
mtftl format --op 30% $drive | grep -q 'headers in metadata'
mtftl dump $drive | grep -q '"headers": "metadata"'
dmsetup create t --table "$(table $drive "$@")"
verify /dev/mapper/t --size=100% --io_size=45M --do_verify=1
dmsetup remove t
mtftl check $drive
mtftl dump $drive > dump
grep -q '"footer": true' dump
dmsetup create t --table "$(table $drive "$@")"
verify /dev/mapper/t --size=100% --io_size=45M --verify_only=1
verify /dev/mapper/t --size=100% --io_size=45M --do_verify=0 --randseed=2 --end_fsync=1
test "$(field victims t)" -gt 0
test "$(field flash_headers t)" = 0
flash 1 0
dmsetup remove t
flash 0 0
mtftl check $drive
dmsetup create t --table "$(table $drive "$@")"
verify /dev/mapper/t --size=100% --io_size=45M --verify_only=1 --randseed=2
test "$(field read_errors t)" = 0
dmsetup remove t
mtftl check $drive
