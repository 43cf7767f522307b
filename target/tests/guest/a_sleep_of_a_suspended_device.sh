#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The machine wakes up: a suspended device sends nothing, and one whose drive is not ready yet
# tries again.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=32 zone_size=1
dmsetup create layer --table "0 $((32 * 2048)) linear /dev/nullb0 0"
mtftl format --op 30% /dev/mapper/layer > /dev/null
dmsetup create t --table "$(table /dev/mapper/layer lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=10 oflag=direct conv=fsync status=none
commands() { awk '{ print $1 + $5 }' /sys/class/block/nullb0/stat; }
echo devices > /sys/power/pm_test
# Suspended by an administrator meanwhile.
dmsetup suspend --nolockfs --noflush t
before=$(commands)
echo disk > /sys/power/state
usleep 100000
test $(commands) = $before
dmsetup resume t
test $(commands) -gt $before
dmsetup status t | grep 'mtftl rw'
# Reads fail when it wakes up, and then no more.
holds wake
echo disk > /sys/power/state &
machine=$!
until_true 60 is_held wake
become flakey /dev/nullb0 0 0 3600 1 error_reads
go wake
wait $machine
{ dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct conv=fsync status=none; touch wrote; } &
usleep 100000
fails test -e wrote
until_true 10 says 'the superblock log cannot be read after a sleep'
dmsetup status t | grep 'mtftl rw'
become linear /dev/nullb0 0
until_true 20 test -e wrote
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
