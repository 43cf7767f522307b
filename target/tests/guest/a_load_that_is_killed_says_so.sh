#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A table load is killed before its threads are made: it is not out of memory, and the next load
# succeeds.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
line=$(table /dev/nullb0 lanes 2)
dmsetup create t --notable
holds threads
dmsetup load t --table "$line" &
job=$!
until_true 10 is_held threads
kill -9 $job
go threads
wait $job || true
dmesg | grep 'mtftl: Interrupted by a signal'
dmesg | fails grep 'Out of memory'
dmsetup load t --table "$line"
dmsetup resume t
dmsetup remove t
