#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A device whose checkpoints hold the whole map is opened as it is, and a clean stop makes a log of
# map blocks of it. The power goes at each program of that stop, and nothing is lost.
#
# clock: virtual
# cpus: 2
# profile: dram
# device: small
# timeout: 900

set -e
. ./guest.sh

# As an older version leaves it, for so does mtftl resize. A zone has 16384 sectors.
dmsetup create short --table "0 $((20 * 16384)) linear /dev/nvme0n1 0"
mtftl format --op 40% /dev/mapper/short > /dev/null
dmsetup remove short
mtftl resize /dev/nvme0n1
has_log() { mtftl dump /dev/nvme0n1 | grep -q '"map_log": *true'; }
fails has_log
open_t() { mtftl open /dev/nvme0n1 t lanes=2; }
written=0
cuts=0
until has_log; do
	open_t
	test "$(judge /dev/mapper/t 0 $written)" = 0
	written=$((written + 100))
	numbered 0 $written | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
	dmsetup message t 0 checkpoint
	cuts=$((cuts + 1))
	flash 0x2 $cuts > /dev/null
	dmesg -c > /dev/null
	dmsetup remove t
	dmesg > said
	flash 0x3 0 > /dev/null || true
	power_on
done
grep 'its map is in a log of blocks from now on' said
# In front of the last one: in the map blocks and the stream, and in the record.
test "$cuts" -ge 3
mtftl check /dev/nvme0n1
open_t
test "$(judge /dev/mapper/t 0 $written)" = 0
# From here on a stop writes what has changed.
dmsetup message t 0 reset_stats
dd if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct status=none
dmsetup message t 0 checkpoint
test "$(field flash_meta t)" -le 6
dmsetup remove t
