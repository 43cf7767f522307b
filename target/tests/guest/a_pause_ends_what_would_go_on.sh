#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Zones that are erased one after another, and are long about it: at most the one under way comes
# to its end.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small flash.erase_ns=40000000

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
dmsetup message t 0 low_water 12
for turn in $(seq 8); do
	fio --name=fill --filename=/dev/mapper/t --direct=1 --rw=write --bs=64k --output=fio.log --eta=never
	# Nothing is left in any zone: GC has all of them erased.
	blkdiscard /dev/mapper/t
	usleep $((turn * 17300))
	dmsetup suspend --nolockfs --noflush t
	quiet nvme0n1 100000
	dmsetup resume t
done
test "$(field victims t)" -gt 0
dmsetup remove t
mtftl check /dev/nvme0n1
