#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A member of an md array vanishes under load: a hot spare takes its place. Then another one
# vanishes, and a new drive is put in by hand. The load's reads find what it wrote all the while,
# and in the end the copies or parities agree.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# drives: 4
# packages: mdadm
# cases: 1 5
# timeout: 1200

set -e
. ./guest.sh

# vanish I: the drive of member tI leaves the bus, as one that is pulled out; appear: it is there again, as $drive
vanish() { echo 1 > "/sys/class/nvme/nvme$1/device/remove"; }
appear() {
	echo 1 > /sys/bus/pci/rescan
	until_true 60 unused
}
unused() {
	for drive in /dev/nvme*n1; do
		[ -n "$(ls "/sys/class/block/${drive#/dev/}/holders")" ] || return 0
	done
	return 1
}
# failed I: md has given up the member, which device-mapper made as number I; whole: none is missing, all is copied
failed() { grep -q "dm-$1\[[0-9]*\](F)" /proc/mdstat; }
whole() { md_is "$up" && grep -q idle /sys/block/md0/md/sync_action; }

case $1 in
1) all=(/dev/mapper/t{0..2}) up=UU;;
5) all=(/dev/mapper/t{0..3}) up=UUU;;
esac
members 4
mdadm --create /dev/md0 --run --quiet --assume-clean --level="$1" --raid-devices=${#up} --spare-devices=1 --size=24M \
	"${all[@]}"
echo 100000 > /proc/sys/dev/raid/speed_limit_min
md_is $up
verify /dev/md0 --size=8M --io_size=16M --do_verify=0 --end_fsync=1
fio --name=load --filename=/dev/md0 --direct=1 --rw=randrw --bs=4k --ioengine=io_uring --iodepth=8 --rate_iops=2000,2000 \
	--offset=8M --size=8M --verify=crc32c --verify_backlog=64 --verify_fatal=1 --verify_dump=0 \
	--time_based --runtime=1h --output=load.log --eta=never &
load=$!

echo the spare
vanish 1
until_true 60 failed 1
until_true 120 whole
test "$(cat /sys/block/md0/md/degraded)" = 0
kill -0 $load

echo a new drive
mdadm /dev/md0 --quiet --remove /dev/mapper/t1
dmsetup remove t1
appear
mtftl format --op 30% --force "$drive" > /dev/null
dmsetup create t1 --table "$(table "$drive" lanes 2)"
vanish 0
until_true 60 failed 0
md_is "${up/U/_}"
mdadm /dev/md0 --quiet --add /dev/mapper/t1
until_true 120 whole
kill -0 $load

killall -INT fio
wait $load || true
cat load.log
fails grep 'err=[^ ]*[1-9]' load.log
test "$(mismatches)" = 0
verify /dev/md0 --size=8M --io_size=16M --verify_only=1
cat /proc/mdstat
mdadm --stop --quiet /dev/md0
