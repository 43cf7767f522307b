#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# More zones are written in part than the target would ever have open: it finishes what is too
# much.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 zone_max_open=4 zone_max_active=4
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
dmsetup remove t
for zone in 61 62 63; do
	[ "$(blkzone report /dev/nullb0 | grep -c '(oi)\|(oe)\|(cl)')" = 4 ] ||
		dd if=/dev/urandom of=/dev/nullb0 bs=4k count=1 seek=$((zone * 1024)) oflag=direct status=none
done
dmsetup create t --table "$(table /dev/nullb0)"
dmsetup message t 0 checkpoint
verify /dev/mapper/t --size=32M --io_size=48M --verify_only=1
verify /dev/mapper/t --size=32M --io_size=48M --do_verify=1
test "$(field bad t)" = 0
dmsetup remove t
mtftl check /dev/nullb0
