#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Zone 0 goes offline, and with it the only record of the superblock: a restore of the header brings
# all data back, from zone 1. Such a drive is formatted anew by way of a dm-linear behind the zone.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl header-backup /dev/nullb0 header
line="$(table /dev/nullb0)"
dmsetup create t --table "$line"
verify /dev/mapper/t --size=32M --do_verify=1 --end_fsync=1
dmsetup remove t
echo 0 > /sys/kernel/config/nullb/nullb0/zone_offline
fails dmsetup create t --table "$line"
says 'No superblock found, and one of its zones is offline'
dmsetup remove t || true
fails mtftl check /dev/nullb0 2> said
grep 'a zone where it may have been is offline.*mtftl header-restore' said
fails mtftl probe /dev/nullb0
mtftl header-restore /dev/nullb0 header
dmsetup create t --table "$line"
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=32M --verify_only=1
verify /dev/mapper/t --size=32M --do_verify=1
dmsetup remove t
mtftl check /dev/nullb0

fails mtftl format --force /dev/nullb0 2> said
grep 'zone 0 is offline, expected a writable one for superblocks; format a dm-linear' said
dmsetup create behind --table "0 $((63 * 8192)) linear /dev/nullb0 8192"
mtftl format --force --op 30% /dev/mapper/behind
dmsetup create t --table "$(table /dev/mapper/behind)"
verify /dev/mapper/t --io_size=300M
gained
dmsetup remove t
mtftl check /dev/mapper/behind
