#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A flush covers what the drive has in its cache, although the flushes before it were not sent: two
# users sync each block. Then blocks come that nobody syncs, until one of them is.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small

set -e
. ./guest.sh

open_two() { dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"; }
mtftl format --op 30% /dev/nvme0n1 > /dev/null
open_two
fio --name=synced --filename=/dev/mapper/t --direct=1 --bs=4k --ioengine=psync --numjobs=2 --size=64k \
	--offset=4m --offset_increment=64k --rw=write --fsync=1 --output=fio.log
put 100 100 200
wait_for 'fill 0,0'
put 8 8 1 ,fsync
flash 1 0
dmsetup remove t
flash 0 0
open_two
[ "$(judge /dev/mapper/t 100 200)" = 0 ]
[ "$(judge /dev/mapper/t 8 1)" = 0 ]
dmsetup remove t
mtftl check /dev/nvme0n1
