#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A reset's flush is under way, and will fail: no user's flush may call durable what it drops.
#
# Another module holds that flush. So the user's flush is asked for in between, whatever the
# device's times are.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

null nullb0 size=32 zone_size=1 cache_size=1
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
write() { dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none; }
# The first zone becomes full, and a third of it garbage.
numbered 10000 480 | write
numbered 20000 64 | write
insmod ./hold.ko what=flush
hold=/sys/module/hold/parameters
dmsetup message t 0 gc
until_true 10 grep flush $hold/held
before=$(cat $hold/asked)
asked() { test "$(cat $hold/asked)" -gt "$before"; }
sync /dev/mapper/t &
until_true 10 asked
echo flush > $hold/go
fails wait $!
dmesg | grep 'read-only: a flush failed'
fails sync /dev/mapper/t
dmsetup remove t
