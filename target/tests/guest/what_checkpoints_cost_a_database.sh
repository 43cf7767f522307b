#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With an fsync after each 4 KiB of a GiB, over ten lengths of the log, checkpoints write the map
# blocks of that GiB alone.
#
# clock: virtual
# cpus: 2
# profile: dram
# device: large
# timeout: 1200
# judge: test_flush.py

set -e
. ./guest.sh

mtftl format --op 25% /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
blocks=$(($(blockdev --getsz /dev/mapper/ftl) / 8))
map=$(((blocks + 1023) / 1024))
dmsetup message ftl 0 checkpoint
dmsetup message ftl 0 reset_stats
fio --name=job --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --fsync=1 --norandommap \
	--size=1G --io_size=$((20 * map * 4096)) --output=job.log
for name in written flash_data flash_headers flash_meta checkpoints; do echo "$name $(field $name ftl)"; done
echo "map $map"
echo "zones $(zones /dev/nvme0n1 | wc -l)"
echo "capacity $(($(blkzone report -c 1 /dev/nvme0n1 | sed -E 's/.*cap (0x[0-9a-f]+),.*/\1/') / 8))"
mtftl close ftl
