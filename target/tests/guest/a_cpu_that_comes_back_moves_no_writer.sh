#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# CPU 1 goes and comes back. The kernel then unbinds all threads that were made for a
# node. Each lane's writer is on its own CPU afterwards.
#
# kernel: current
# clock: virtual
# cpus: 4
# profile: none

set -e
. ./guest.sh

# The CPUs of each writer, in the order of lanes.
writers() {
	for lane in 0 1 2 3; do
		grep -lx "mtftl/dm-0/$lane" /proc/[0-9]*/comm | sed 's|comm|status|' |
			xargs sed -n 's/^Cpus_allowed_list:[[:space:]]*//p'
	done
}
null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
writers | tee before
echo 0 > /sys/devices/system/cpu/cpu1/online
echo 1 > /sys/devices/system/cpu/cpu1/online
writers | tee after
seq 0 3 | diff - before
diff before after
dmsetup remove t
