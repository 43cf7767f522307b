#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# While the device is suspended memory may wait for it: map, buffers and threads come with the
# load.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --table "$line"
verify /dev/mapper/t --size=16M --do_verify=1
dmsetup load t --table "$line"
cd /sys/kernel/tracing
echo 'order >= 3 && comm ~ "dmsetup*"' > events/kmem/mm_page_alloc/filter
echo 'parent_comm ~ "kthreadd*"' > events/sched/sched_process_fork/filter
for event in kmem/mm_page_alloc sched/sched_process_fork; do echo 1 > events/$event/enable; done
dmsetup suspend t
dmsetup resume t
echo 0 > events/enable
cd - > /dev/null
grep -v '^#' /sys/kernel/tracing/trace > allocated || true
# A slab that would be large (debug kernels' are) is asked for like that, and does without.
grep -v 'child_comm=kworker\|kworker\|NOMEMALLOC' allocated > ours || true
head -3 ours
test ! -s ours
verify /dev/mapper/t --size=16M --verify_only=1
dmsetup remove t
