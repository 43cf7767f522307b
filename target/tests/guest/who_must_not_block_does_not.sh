#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Writes go without a detour, and reads too; where the drive has few requests, a read in parts
# waits for them.
#
# A caller whose read ends with EAGAIN in an interrupt may never read again: io_uring on 6.1 tells
# its user.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# timeout: 300

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
test "$(./blocks nowait /dev/mapper/t 2048)" = "0 0"
cat /sys/block/nvme0n1/queue/nr_requests
echo 4 > /sys/block/nvme0n1/queue/nr_requests
read -r writes reads < <(./blocks nowait /dev/mapper/t 2048)
echo "$writes writes and $reads reads said EAGAIN"
test "$writes" = 0
test "$reads" = 0
# A thread that has read is no reader any more: zones are reset.
for turn in 1 2 3 4 5 6; do
	./blocks nowait /dev/mapper/t 8192
done
test "$(field victims t)" -ge 2
dmsetup remove t
mtftl check /dev/nvme0n1
