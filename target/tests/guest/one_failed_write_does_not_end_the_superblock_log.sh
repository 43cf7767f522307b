#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The log's zone is full and the first write to the other one fails: it is tried again.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: flash.size=32M zoned.zone_size=512K zoned.zone_capacity=512K flash.channels=2 flash.dies=2 flash.planes=1 flash.program_pages=1 flash.block_pages=8

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1)"
# Zone 1 has 128 blocks from LBA 128 on; one write among them fails.
flash 0x11 128 128 1
for turn in $(seq 132); do dmsetup message t 0 checkpoint; done
read -r start written condition < <(zones /dev/nvme0n1 | sed -n 2p)
test "$written" -gt 0
dmesg | grep 'nvme0n1: .*I/O Error'
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=8M --do_verify=1
dmsetup remove t
mtftl check /dev/nvme0n1
