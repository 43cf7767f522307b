#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A mount after a cut is killed at each of its long steps; the next mount succeeds, and all data
# is there.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 64 ,fsync
dmsetup message t 0 checkpoint
put 64 64 64 ,fsync
dmsetup wipe_table layer
dmsetup remove t
dmsetup create t --notable
dmsetup load t --table "$(table /dev/nullb0 lanes 1)"
holds load scan sort first
for what in load scan sort first; do
	dmsetup resume t &
	pid=$!
	until_true 10 is_held $what
	kill -9 $pid
	go $what
	fails wait $pid
	dmsetup info t | grep -q SUSPENDED
done
test $(dmesg | grep -c 'mount: recover: .*, failed') = 3
dmesg | grep -q 'mount: first checkpoint: .*, failed'
dmsetup resume t
test "$(judge /dev/mapper/t 0 128)" = 0
ends
