#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One drive does not answer, and its table is being removed: another is mounted, suspended and
# removed.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

for i in 0 1; do null nullb$i size=64; mtftl format --op 30% /dev/nullb$i > /dev/null; done
dmsetup create layer --table "0 $(cat /sys/class/block/nullb0/size) linear /dev/nullb0 0"
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=4 oflag=direct status=none
dmsetup suspend --nolockfs --noflush layer
dmsetup remove t &
job=$!
hangs $job
timeout 20 dmsetup create u --table "$(table /dev/nullb1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/u bs=64k count=4 oflag=direct status=none
timeout 20 dmsetup suspend u
timeout 20 dmsetup resume u
timeout 20 dmsetup remove u
dmsetup resume layer
wait $job
