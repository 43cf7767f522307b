#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Beside users at half of their peak, FUA takes at most 1.3 times as long as alone and costs them
# at most 5%.
#
# clock: virtual
# cpus: 8
# profile: tlc
# needs: fua
# judge: test_flush.py

set -e
. ./guest.sh

seed=$1

insmod ./fuawrite.ko
mtftl format --force /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 ftl
# others NAME MILLISECONDS [RATE]: seven users on as many CPUs
others() {
	fio --name=others --filename=/dev/mapper/ftl --rw=randwrite --bs=4k --direct=1 --ioengine=psync --numjobs=7 \
		--size=512M --norandommap --randseed=$seed --cpus_allowed=0-6 --cpus_allowed_policy=split --time_based \
		--runtime=$2ms --group_reporting ${3:+--rate_iops=$3} --output-format=json --output=$1.json
	grep -A40 '"write" :' $1.json | awk '/"iops" :/ { print int($3); exit }'
}
lone() { taskset 0x80 ./fua /dev/mapper/ftl 262144 65536 $1 $seed; }
peak=$(others peak 100)
half=$((peak / 14))
alone=$(lone 200)
test "$(field flushes ftl)" = 0
rest=$(others rest 300 $half)
others both 300 $half > both &
usleep 50000
beside=$(lone 200)
wait $!
echo "peak $peak alone $alone beside $beside rest $rest both $(cat both)"
mtftl close ftl
