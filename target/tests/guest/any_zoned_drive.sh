#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each kind of zoned drive that the kernel can make: formatted, overwritten past its capacity and
# verified; blocks discarded; stopped, mounted, read back; cut, mounted, read back.
#
# Each kind is a line of the output: its name, and "works", "refused: REASON", "absent: REASON" or
# "failed: STEP". Kinds whose name matches the script's argument run; without it all do.
#
# clock: wall
# cpus: 2
# profile: stock
# device: zoned.zone_size=128M zoned.zone_capacity=2M
# timeout: 1500
# kernels: 6.1 6.12 current
# judge: test_drives.py

set -e
. ./guest.sh

only=$1
seed=1

# sysfs DRIVE: its folder
sysfs() { echo "/sys/dev/block/$(lsblk -ndo MAJ:MIN "$1" | tr -d ' ')"; }

# absent REASON: this kernel has no such drive
absent() {
	echo "absent: $1" > verdict
	exit 1
}

# refused REASON: that it is this drive goes without saying
refused() {
	local reason=${1#"mtftl: "}
	reason=${reason#"$drive: "}
	echo "refused: ${reason:-without a word}" > verdict
	exit 1
}

# open_on DRIVE: as t, as large as its superblock says
open_on() {
	local bytes
	mtftl probe "$1" > probed 2> said || refused "$(tail -1 said)"
	bytes=$(sed -n 's/^MTFTL_SIZE=//p' probed)
	dmsetup create t --table "0 $((bytes / 512)) mtftl $1 2 lanes 2" ||
		refused "$(dmesg | sed -n 's/.*device-mapper: table: [^ ]* //p' | tail -1)"
}

# sum: of all blocks of t
sum() { ./blocks sum /dev/mapper/t; }

step() { echo "$1" > step; }

# below TARGET: /dev/mapper/below is all whole zones of $drive, by this target
below() {
	local zone size
	zone=$(cat "$(sysfs "$drive")/queue/chunk_sectors")
	size=$(($(blockdev --getsz "$drive") / zone * zone))
	echo "0 $size $1 $drive 0" | become_table below
}

# use: what all kinds of drives must do
use() {
	step format
	mtftl format --force --op 30% "$drive" 2> said || refused "$(tail -1 said)"
	step write
	open_on "$drive"
	size=$(blockdev --getsize64 /dev/mapper/t)
	verify /dev/mapper/t --bsrange=4k-64k --io_size=$((4 * size)) --randseed=$seed --do_verify=1
	gained
	step discard
	blkdiscard --length $((2 << 20)) /dev/mapper/t
	cmp -n $((2 << 20)) /dev/mapper/t /dev/zero
	step close
	before=$(sum)
	dmsetup remove t
	mtftl check "$drive"
	step mount
	open_on "$drive"
	test "$(sum)" = "$before"
	test "$(field read_errors t)" = 0
	dmsetup remove t

	step crash
	below linear
	open_on /dev/mapper/below
	verify /dev/mapper/t --bsrange=4k-64k --offset=$((size / 2)) --io_size=$((size / 3)) --randseed=$seed
	numbered 0 500 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync,notrunc status=none
	before=$(sum)
	dmsetup wipe_table below
	dmsetup remove t
	dmsetup remove below
	step recover
	open_on "$drive"
	test "$(judge /dev/mapper/t 0 500)" = 0
	test "$(sum)" = "$before"
	dmsetup remove t
	mtftl check "$drive"
}

# why_not_made: null_blk has said why it makes no such drive
why_not_made() {
	local why
	why=$(dmesg | sed -n 's/.*null_blk: //p' | grep -v 'loaded$\|created$\|using ' | tail -1)
	[ -z "$why" ] || echo "absent: null_blk: $why" > verdict
}

# kind NAME MAKER WORD...: a line of the output. The maker sets $drive, or is absent.
kind() {
	local name=$1 status
	shift
	[[ "$name" =~ $only ]] || return 0
	rm -f verdict
	dmesg -c > /dev/null
	step make
	seed=$((seed + 1))
	set +e
	(
		set -e
		"$@"
		use
	) > log 2>&1
	status=$?
	set -e
	[ $status != 0 ] || echo "works" > verdict
	[ -e verdict ] || [ "$(cat step)" != make ] || why_not_made
	[ -e verdict ] || {
		echo "failed: $(cat step)" > verdict
		tail -20 log
		dmesg | tail -20
	}
	echo "kind $name | $(cat verdict)"
	dmsetup remove_all --force
	if [ -d /sys/kernel/config/nullb/n$seed ]; then
		echo 0 > /sys/kernel/config/nullb/n$seed/power
		rmdir /sys/kernel/config/nullb/n$seed
	fi
	rmmod scsi_debug 2> /dev/null || true
}

# of_null KEY=VALUE...: 16 sequential zones of 2 MiB, and what is given
of_null() {
	local pair
	[ -d /sys/kernel/config/nullb ] || modprobe -q null_blk nr_devices=0
	drive=/dev/n$seed
	mkdir /sys/kernel/config/nullb/n$seed
	for pair in "$@"; do
		[ -e "/sys/kernel/config/nullb/n$seed/${pair%%=*}" ] || absent "null_blk has no ${pair%%=*}"
	done
	rmdir /sys/kernel/config/nullb/n$seed
	null n$seed zone_size=2 size=32 "$@"
}

# of_scsi PARAMETER=VALUE...: the same from scsi_debug, by way of the SCSI disk driver
of_scsi() {
	local path
	modprobe sd_mod
	modprobe scsi_debug zbc=managed dev_size_mb=32 zone_size_mb=2 zone_nr_conv=0 sector_size=4096 delay=0 "$@" ||
		absent "scsi_debug has no such parameter"
	for _ in $(seq 500); do
		for path in /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block/*; do
			drive=/dev/${path##*/}
			[ ! -b "$drive" ] || [ "$(blockdev --getsz "$drive")" = 0 ] || return 0
		done
		usleep 10000
	done
	return 1
}

# of_nvme: QEMU's own zoned namespace
of_nvme() { drive=/dev/nvme0n1; }

# of_part TARGET: 16 zones of a drive that has more, on both sides
of_part() {
	of_null size=40 zone_nr_conv=2
	echo "0 65536 $1 $drive $((3 * 4096))" | dmsetup create part
	drive=/dev/mapper/part
}

# of_crypt MAKER WORD...: dm-crypt on a drive
of_crypt() {
	local key
	"$@"
	for module in ecb xts dm-crypt; do
		[ ! -e $module.ko ] || insmod $module.ko 2> /dev/null || true
	done
	key=$(printf '%02x' $(seq 64))
	echo "0 $(blockdev --getsz "$drive") crypt aes-xts-plain64 $key 0 $drive 0 1 sector_size:4096" |
		dmsetup create crypt
	drive=/dev/mapper/crypt
}

# of_zloop: files as zones
of_zloop() {
	insmod zloop.ko || absent "the kernel has no zloop"
}

kind "null_blk, no zone append" of_null zone_append_max_sectors=0
kind "null_blk, no zone append, conventional zones, blocks of 512, 4 open zones" \
	of_null zone_append_max_sectors=0 zone_nr_conv=3 size=38 blocksize=512 zone_max_open=4
kind "null_blk, a smaller last zone" of_null size=33
kind "null_blk, a smaller last zone, conventional zones, blocks of 512, 4 open zones" \
	of_null size=39 zone_nr_conv=3 blocksize=512 zone_max_open=4
kind "null_blk, a smaller last zone of less than a zone's capacity" of_null size=33 zone_capacity=1
kind "null_blk, 4 active zones" of_null zone_max_active=4
kind "null_blk, 4 open and 6 active zones" of_null zone_max_open=4 zone_max_active=6
kind "null_blk, 6 open and 6 active zones, smaller zones" of_null zone_max_open=6 zone_max_active=6 zone_size=1 size=32
kind "null_blk, larger zones" of_null zone_size=8 size=96
kind "null_blk, a queue of bios" of_null queue_mode=0
kind "null_blk, all zones full" of_null zone_full=1
kind "null_blk, rotating" of_null rotational=1
kind "null_blk, a write cache" of_null cache_size=4
kind "null_blk, writes of 8 KiB at most" of_null max_sectors=16
kind "null_blk, writes of 32 KiB at most, blocks of 512" of_null max_sectors=64 blocksize=512
kind "null_blk, 3 open zones" of_null zone_max_open=3
kind "null_blk, 8 zones" of_null size=16
kind "null_blk, one sequential zone" of_null zone_nr_conv=15
kind "null_blk, no zones" of_null zoned=0
kind "null_blk that keeps nothing" of_null memory_backed=0
kind "scsi_debug, blocks of 4096" of_scsi
kind "scsi_debug, blocks of 512" of_scsi sector_size=512
kind "scsi_debug, 512e" of_scsi sector_size=512 physblk_exp=3
kind "scsi_debug, 512e, conventional zones" of_scsi sector_size=512 physblk_exp=3 zone_nr_conv=3 dev_size_mb=38
kind "scsi_debug, zones with gaps" of_scsi zone_cap_mb=1
kind "scsi_debug, zones with gaps, 512e, conventional zones" \
	of_scsi zone_cap_mb=1 sector_size=512 physblk_exp=3 zone_nr_conv=3 dev_size_mb=38
kind "scsi_debug, 4 open zones" of_scsi zone_max_open=4
kind "scsi_debug, host-aware" of_scsi zbc=aware
kind "QEMU's zoned namespace" of_nvme
kind "dm-linear, a part of a drive with conventional zones" of_part linear
kind "dm-crypt on null_blk" of_crypt of_null
kind "dm-crypt on null_blk without zone append" of_crypt of_null zone_append_max_sectors=0
kind "dm-crypt on scsi_debug, 512e, conventional zones" \
	of_crypt of_scsi sector_size=512 physblk_exp=3 zone_nr_conv=3 dev_size_mb=38
kind "zloop" of_zloop
for conventional in 0 3; do
	for capacity in 2 1; do
		for open in 0 4; do
			for block in 4096 512; do
				what="null_blk"
				[ $conventional = 0 ] || what+=", conventional zones"
				[ $capacity = 2 ] || what+=", capacity below size"
				[ $open = 0 ] || what+=", 4 open zones"
				kind "$what, blocks of $block" \
					of_null size=$((32 + 2 * conventional)) zone_nr_conv=$conventional \
					zone_capacity=$capacity zone_max_open=$open blocksize=$block
			done
		done
	done
done
exit 0
