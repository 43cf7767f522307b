#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A device without zones: operations on them, and a secure erase, are not supported, and cost
# nothing.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
for command in "blkzone reset" "blkzone report" "blkzone finish"; do
	fails $command /dev/mapper/t
done
fails blkdiscard --secure --length 4096 /dev/mapper/t 2> said
grep 'Operation not supported' said
dmsetup status t | grep 'mtftl rw'
verify /dev/mapper/t --size=4M --do_verify=1
dmsetup remove t
mtftl check /dev/nullb0
