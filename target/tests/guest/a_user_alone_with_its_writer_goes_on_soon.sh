#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The only CPU runs a user and the writer of its lane. The user stops while the writer sends what
# is worth a turn, and not while it sends most of a large buffer, which is 6 ms. Another task of the
# kernel may take a slice of 3 ms.
#
# clock: virtual
# cpus: 1
# profile: dram

set -e
. ./guest.sh

mtftl format /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1 buffer_entries 1024 write_unit 1)"
job --rw=randwrite --bs=4k --ioengine=psync --time_based --runtime=50ms --size=512m --max_latency=4ms
dmsetup status t
[ "$(field written t)" -gt 1500 ]
