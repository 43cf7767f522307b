#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Four open zones fail what is in flight, at once: nothing says yet that writes fail wherever they
# go.
#
# What follows on from an earlier write may share its zone, so the writes are at random.
# Other writes take so long that none succeeds before the last one of the burst has failed.
#
# clock: virtual
# cpus: 4
# profile: none

set -e
. ./guest.sh

null nullb0 size=128 zone_size=2 irqmode=2 completion_nsec=20000000
mtftl format --op 30% /dev/nullb0 > /dev/null
# layer ZONE...: these fail
layer() {
	local zone failing=" $* "
	for zone in $(seq 0 63); do
		case $failing in
		*" $zone "*) echo "$((zone * 4096)) 4096 flakey /dev/nullb0 $((zone * 4096)) 0 3600 1 error_writes";;
		*) echo "$((zone * 4096)) 4096 linear /dev/nullb0 $((zone * 4096))";;
		esac
	done
}
layer | dmsetup create layer
dmsetup create t --table "$(table /dev/mapper/layer lanes 4)"
work="--filename=/dev/mapper/t --direct=1 --ioengine=psync --rw=randwrite --bs=128k --size=512k --offset_increment=1M"
work+=" --numjobs=4 --cpus_allowed=0-3 --cpus_allowed_policy=split --output=fio.log"
fio --name=first $work --end_fsync=1 --eta=never
echo 1 > /sys/kernel/tracing/events/mtftl/mtftl_unit_submitted/enable
dmsetup suspend --nolockfs --noflush layer
# More than the buffers take: every lane has units on their way.
fio --name=burst $work --offset=8M --size=2M --eta=never &
used() { grep -o 'zone [0-9]*' /sys/kernel/tracing/trace | sort -u | cut -d' ' -f2; }
all_used() { test $(used | wc -l) -ge 4; }
until_true 10 all_used
echo "writes on their way to" $(used)
layer $(used) | dmsetup load layer
dmsetup resume layer
wait $!
sync /dev/mapper/t
echo "$(field write_errors t) writes failed"
test "$(field write_errors t)" -ge 4
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
