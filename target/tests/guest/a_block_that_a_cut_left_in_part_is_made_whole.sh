#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Blocks of 512 bytes: a copy of the device has write pointers inside a block of ours, as after a
# power cut.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 blocksize=512 size=64
null nullb1 blocksize=512 size=64
mtftl format --op 40% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
verify /dev/mapper/t --size=8M --do_verify=0
sync /dev/mapper/t
torn=0
while read -r start wp cond; do
	dd if=/dev/nullb0 of=/dev/nullb1 bs=4k skip=$((start / 8)) seek=$((start / 8)) count=$((wp / 8)) \
		iflag=direct oflag=direct status=none
	[ $cond = 2 ] && [ $start -ge 16384 ] || continue
	fio --name=torn --filename=/dev/nullb1 --direct=1 --rw=write --bs=512 --size=1536 \
		--offset=$(((start + wp) * 512)) --output=fio.log
	torn=$((torn + 1))
done < <(zones /dev/nullb0)
test $torn -gt 0
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb1 lanes 2)"
verify /dev/mapper/t --size=8M --verify_only=1
verify /dev/mapper/t --size=8M --randseed=2 --do_verify=1
test "$(field write_errors t)" = 0
dmsetup remove t
mtftl check /dev/nullb1
