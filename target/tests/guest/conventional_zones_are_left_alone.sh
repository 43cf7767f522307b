#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The format is in the longest run of sequential zones. Conventional zones, as SMR disks have them, a
# smaller last zone and a shorter run keep what they hold, also through GC and a crash.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

# open_on DEVICE: as t
open_on() {
	bytes=$(mtftl probe "$1" | sed -n 's/^MTFTL_SIZE=//p')
	line="0 $((bytes / 512)) mtftl $1 2 lanes 1"
	dmsetup create t --table "$line"
}

null nullb0 size=136 zone_nr_conv=3
dd if=/dev/urandom of=before bs=1M count=12 iflag=fullblock status=none
dd if=before of=/dev/nullb0 bs=1M oflag=direct status=none
become linear /dev/nullb0 0
mtftl format --op 30% /dev/mapper/layer | tee said
grep '3 zones are left alone' said
open_on /dev/mapper/layer
verify /dev/mapper/t --io_size=300M
gained
numbered 0 2000 |
	dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync,notrunc status=none
drop_writes
test "$(judge /dev/mapper/t 0 2000)" = 0
dmsetup remove t
mtftl check /dev/mapper/layer
cmp -n $((12 << 20)) before /dev/nullb0

# Two conventional zones, 31 of 4 MiB, one of 2 MiB.
null nullb3 size=134 zone_capacity=4 zone_nr_conv=2
mtftl format --op 30% /dev/nullb3 | grep '3 zones are left alone'
open_on /dev/nullb3
verify /dev/mapper/t --io_size=200M
dmsetup remove t
mtftl check /dev/nullb3
zones /dev/nullb3 | tail -1 | grep ' 0 1$'

# A shorter run in front of conventional zones is left alone, too.
null nullb1 size=32
null nullb2 size=128 zone_nr_conv=2
dd if=before of=/dev/nullb1 bs=1M count=4 oflag=direct status=none
dmsetup create both <<-END
	0 65536 linear /dev/nullb1 0
	65536 262144 linear /dev/nullb2 0
END
mtftl format --op 30% /dev/mapper/both | grep '10 zones are left alone'
mtftl dump /dev/mapper/both | grep '"first_zone": 10'
open_on /dev/mapper/both
verify /dev/mapper/t --io_size=100M
dmsetup remove t
mtftl check /dev/mapper/both
cmp -n $((4 << 20)) before /dev/nullb1
