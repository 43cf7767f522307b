#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What block 7 holds on each of the media, and the status of mtftl check; from one boot.
#
# clock: virtual
# cpus: 2
# profile: none
# judge: test_target.py

set -e
. ./guest.sh

# Files that are pushed: NUMBER-ZONE is the content of a zone of a drive.
for number in $(printf '%s\n' [0-9]*-* | sed 's/-.*//' | sort -nu); do
	null nullb$number size=128 zone_capacity=3
	for file in $number-*; do
		dd if=$file of=/dev/nullb$number bs=4k seek=$((${file#*-} * 1024)) oflag=direct status=none
	done
	dmsetup create t --table "$(table /dev/nullb$number)"
	held=$(dd if=/dev/mapper/t bs=4k skip=7 count=1 iflag=direct status=none 2> /dev/null | head -c 3)
	dmsetup remove t
	status=0
	mtftl check /dev/nullb$number > /dev/null 2>&1 || status=$?
	echo "$held $status"
done
