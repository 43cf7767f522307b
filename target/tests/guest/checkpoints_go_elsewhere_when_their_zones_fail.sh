#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Both zones of checkpoints become read-only while mounted: checkpoints and stops succeed, in other
# zones.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 zone_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
for zone in 2 3; do echo $((zone * 2048)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup message t 0 checkpoint
test "$(field bad t)" = 1
# The log comes to the other one when the first one's substitute is full: it has 256 blocks.
for ((i = 0; i < 60 && $(field bad t) < 2; i++)); do
	fio --name=some --filename=/dev/mapper/t --rw=randwrite --bs=4k --direct=1 --offset=32M --size=96M --number_ios=200 \
		--output=fio.log
	dmsetup message t 0 checkpoint
done
test "$(field bad t)" = 2
dmsetup suspend t
dmsetup resume t
dmsetup remove t
test -z "$(dmesg | grep 'clean stop failed')"
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
dmsetup remove t
mtftl check /dev/nullb0
