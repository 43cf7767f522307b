#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# No kmalloc by its threads and works while it collects zones with footers: that could loop for
# ever.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
verify /dev/mapper/t --size=100% --io_size=30M --do_verify=0 --eta=never
cd /sys/kernel/tracing
echo 1 > options/stacktrace
for event in kmalloc kmalloc_node; do
	[ -d events/kmem/$event ] || continue
	echo 'comm ~ "mtftl_gc*" || comm ~ "kworker*"' > events/kmem/$event/filter
	echo 1 > events/kmem/$event/enable
done
cd - > /dev/null
verify /dev/mapper/t --size=100% --io_size=60M --randseed=2 --do_verify=0 --eta=never
test "$(field victims t)" -ge 4
echo 0 > /sys/kernel/tracing/events/enable
# Whatever has us on its stack; but the device below keeps its data in memory. CPUs take turns in the trace, between an
# event and its stack too.
awk 'match($0, /\[[0-9]+\]/) { cpu = substr($0, RSTART, RLENGTH) }
	/call_site=/ { event[cpu] = /null_blk|null_insert_page/ ? "" : $0 }
	/\[dm_mtftl\]/ && event[cpu] { print event[cpu]; event[cpu] = "" }' /sys/kernel/tracing/trace > allocated
head -3 allocated
test ! -s allocated
dmsetup remove t
