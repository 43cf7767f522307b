#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mtftl status names each condition of a device, with advice. The page about it shows what is printed
# here.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16
# needs: pretend
# judge: test_status.py
# timeout: 400

set -e
. ./guest.sh

# say LABEL [WORD]...: what mtftl status prints of the device
say() {
	echo "@@ $1"
	shift
	mtftl status "$@" fast 2>&1
	echo "@@="
}

# drive NAME [KEY=VALUE]...: a null_blk drive, formatted
drive() {
	null "$@"
	mtftl format "/dev/$1" > /dev/null
}

# put_data BLOCKS
put_data() {
	numbered 0 "$1" | dd of=/dev/mapper/fast bs=64k iflag=fullblock oflag=direct conv=fsync status=none
}

# put_slowly BLOCKS: so that none waits for room
put_slowly() {
	local at nr
	for at in $(seq 0 256 $(($1 - 1))); do
		nr=$(($1 - at < 256 ? $1 - at : 256))
		numbered $at $nr | dd of=/dev/mapper/fast bs=4k seek=$at iflag=fullblock oflag=direct conv=fsync,notrunc status=none
	done
}

# broken DRIVE HOW ZONE...: read-only or offline from here on
broken() {
	local name=$1 how=$2
	shift 2
	for zone in "$@"; do echo $((zone * 8192)) > "/sys/kernel/config/nullb/$name/zone_$how"; done
}

drive nullb0
mtftl open /dev/nullb0 fast lanes=2
put_slowly 4000
usleep 3000000
say well
say well-json --json
for version in 0.9 1.99; do
	LD_PRELOAD=$PWD/pretend MODULE=$version say module-$version | sed '/^fast/,/^  wear/d'
done
dmsetup suspend fast
say suspended
dmsetup resume fast
mtftl close fast

drive nullb1 size=64
mtftl open /dev/nullb1 fast lanes=1
put_slowly $(($(blockdev --getsz /dev/mapper/fast) / 8))
say full
mtftl close fast

drive nullb2
mtftl open /dev/nullb2 fast lanes=1
put_data 500
usleep 3000000
broken nullb2 readonly 0 1
fails dmsetup message fast 0 checkpoint 2> /dev/null
say read-only
fails mtftl close --force fast 2> /dev/null

drive nullb3
broken nullb3 readonly 40 41 42 43 44 45 46 47 48
mtftl open /dev/nullb3 fast lanes=1
put_data 500
say short-of-spare
mtftl close fast

drive nullb4 size=64
mtftl open /dev/nullb4 fast lanes=1
put_slowly 2048
usleep 3000000
zone=$(zones /dev/nullb4 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
put_slowly 800
broken nullb4 offline $zone
lost_all() { dmsetup status fast | grep -q ' gc idle .* lost [1-9]'; }
dmsetup message fast 0 gc
until_true 10 lost_all
say lost-blocks
mtftl close --force fast

drive nullb5 irqmode=2 completion_nsec=40000000
mtftl open /dev/nullb5 fast lanes=1 &
is_mounting() { say mounting > said && grep -q 'fast is mounting' said; }
until_true 60 is_mounting
cat said
wait $!
mtftl close fast

drive nullb6 irqmode=2 completion_nsec=100000000
mtftl open /dev/nullb6 fast lanes=1
put_data 100
say slow-drive
mtftl close fast

mtftl format --headers blocks /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 fast lanes=1
put_data 4000
usleep 1000000
say old-format
mtftl close fast

mtftl format --force /dev/nvme0n1 > /dev/null
mtftl open /dev/nvme0n1 fast lanes=1
put_data 4000
usleep 1000000
LD_PRELOAD=$PWD/pretend USED=93 say worn
LD_PRELOAD=$PWD/pretend USED=93 say worn-json --json
mtftl close fast
