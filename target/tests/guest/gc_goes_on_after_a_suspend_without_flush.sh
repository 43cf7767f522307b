#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A victim was moved in part, and all that moves waited for programs: nothing else is there to
# wake them.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small flash.program_ns=20000000 flash.suspend=on flash.buffer=0
# timeout: 120

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
fill() {
	fio --name=fill --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log \
		--eta=never "$@"
}
fill --rw=write --bs=64k
fill --rw=randwrite --bs=4k --io_size=10%
sync /dev/mapper/t
before=$(field victims t)
dmsetup message t 0 gc
usleep 10000
dmsetup suspend --nolockfs --noflush t
test "$(field flash_gc t)" -gt 0
fails gained $before
dmsetup resume t
until_true 2 gained $before
dmsetup remove t
mtftl check /dev/nvme0n1
