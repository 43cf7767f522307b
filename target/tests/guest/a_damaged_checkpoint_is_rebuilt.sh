#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Copies of a drive, each with one block of the checkpoint or the map damaged: refused, looked at,
# rebuilt, as they were.
#
# clock: virtual
# cpus: 2
# profile: none
# timeout: 400

set -e
. ./guest.sh

null nullb0
null nullb1
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t
verify /dev/mapper/t --size=40M --io_size=24M --do_verify=0
blkdiscard -o 1M -l 2M /dev/mapper/t
verify /dev/mapper/t --offset=120M --size=8M --randseed=2 --do_verify=0
sync /dev/mapper/t
# What was written and discarded, and the second part.
content() { ./blocks sum /dev/mapper/t 0 $((40 * 256)) $((120 * 256)) $((8 * 256)); }
content > before
mtftl close t
record() { # BLOCK TYPE PLACE: a field of the superblock record there
	dd if=/dev/nullb0 bs=4k count=1 skip=$1 iflag=direct status=none | od -An -t$2 -j$3 -N${2#u} | tr -d ' '
}
last=$(($(zones /dev/nullb0 | awk 'NR == 1 { print $2 / 8 }') - 1))
blocks=$(record $last u8 88)
seat=$(record $last u4 2168)
place=$(record $last u4 $((104 + 4 * seat)))
stream=$(record $last u4 2172)
i=0
while read -r start wp cond; do
	dd if=/dev/nullb0 of=zone$i bs=4k skip=$((start / 8)) count=$((wp / 8)) iflag=direct status=none
	i=$((i + 1))
done < <(zones /dev/nullb0)
echo "zone $place, $blocks blocks from block $stream on, $(stat -c %s zone$place) bytes"
# One of zone records, and one of places, which is the last one of the zone.
test "$blocks" = 2
test "$((stream + 1 + blocks))" = "$(($(stat -c %s zone$place) / 4096))"
map_block() { # NUMBER: where it lies in the zone, whose capacity is 1024 blocks
	echo $(($(od -An -tu4 -j$(((stream + 2) * 4096 + 8 * $1)) -N4 zone$place) % 1024))
}
test "$(map_block 0)" -lt "$stream"
# The stream's header, records and places; the map blocks of the first part and the second one.
for at in "$stream" $((stream + 1)) $((stream + 2)) "$(map_block 0)" "$(map_block 31)"; do
	echo damage at block $at
	blkzone reset /dev/nullb1
	cp zone$place whole
	printf 'ª' | dd of=zone$place bs=1 seek=$((at * 4096 + 70)) conv=notrunc status=none
	i=0
	while read -r start rest; do
		[ ! -s zone$i ] || dd if=zone$i of=/dev/nullb1 bs=64k seek=$((start / 128)) oflag=direct status=none
		i=$((i + 1))
	done < <(zones /dev/nullb0)
	cp whole zone$place
	fails mtftl open /dev/nullb1 t 2> said
	test $(wc -l < said) = 1
	grep 'checkpoint: .*; mtftl check --rebuild' said
	if [ "$at" = "$stream" ]; then
		zones /dev/nullb1 > untouched
		status=0
		mtftl check --rebuild /dev/nullb1 || status=$?
		test $status = 4
		zones /dev/nullb1 | cmp - untouched
	fi
	mtftl check --rebuild --force /dev/nullb1
	mtftl check /dev/nullb1
	mtftl open /dev/nullb1 t
	content | cmp - before
	dd if=/dev/zero of=/dev/mapper/t bs=64k count=8 oflag=direct conv=fsync status=none
	mtftl close t
done
mtftl check /dev/nullb1
