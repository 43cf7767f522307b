#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Files written, buffered and direct, moved, linked and removed, with discards; all there after a
# stop.
#
# clock: wall
# cpus: 2
# profile: none
# timeout: 400
# judge: test_target.py

set -e
. ./guest.sh

# Its arguments are the file systems; not each kernel has each of them.
null nullb0 size=640
mtftl format --op 25% /dev/nullb0 > /dev/null
mkdir -p /mnt
make() {
	case $1 in
	ext4) mke2fs -q -F -t ext4 /dev/mapper/t;;
	f2fs) mkfs.f2fs -q -f /dev/mapper/t;;
	*) mkfs.$1 -q -f /dev/mapper/t;;
	esac
}
check() {
	case $1 in
	ext4) e2fsck -f -n /dev/mapper/t;;
	xfs) xfs_repair -n /dev/mapper/t;;
	btrfs) btrfs check /dev/mapper/t;;
	f2fs) fsck.f2fs --dry-run /dev/mapper/t;;
	esac
}
for name in "$@"; do
	dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
	make $name
	mount -t $name -o discard /dev/mapper/t /mnt
	for turn in 1 2 3; do
		mkdir /mnt/$turn
		fio --directory=/mnt/$turn --filesize=4k-512k --nrfiles=60 --openfiles=8 --file_service_type=random --size=12M \
			--rw=randwrite --fsync=64 --verify=crc32c --name=buffered --bsrange=1k-64k \
			--name=direct --direct=1 --bsrange=4k-64k --output=fio.log || { cat fio.log; exit 1; }
		for i in $(seq 20); do
			mkdir /mnt/$turn/d
			echo $i > /mnt/$turn/d/a
			ln /mnt/$turn/d/a /mnt/$turn/d/b
			mv /mnt/$turn/d/b /mnt/$turn/file$i
			rm -r /mnt/$turn/d
		done
		before=$((turn - 1))
		[ $before = 0 ] || rm -r "/mnt/${before:?}"
	done
	find /mnt -type f | sort | xargs md5sum > sums
	test $(wc -l < sums) -ge 140
	umount /mnt
	dmsetup remove t
	dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
	check $name > fsck.log 2>&1 || { cat fsck.log; exit 1; }
	mount -t $name -o ro /dev/mapper/t /mnt
	md5sum -c sums > md5.log || { grep -v OK md5.log; exit 1; }
	umount /mnt
	dmsetup remove t
	echo $name clean
done
mtftl check /dev/nullb0
