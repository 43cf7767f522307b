#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A unit that failed finds no place while the drive erases a zone, for longer than "nothing moves"
# takes.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 10000 0 720 ,fsync
put 10100 100 140 ,fsync
put 10300 300 120 ,fsync
holds erase nowhere
dmsetup message t 0 gc
until_true 10 is_held erase
become flakey /dev/nullb0 0 0 3600 1 error_writes
# One block: some units that fail before the drive is whole again would be a drive that fails.
put 2000 2000 1 ,fsync &
writer=$!
failed() { test "$(field write_errors t)" -ge 1; }
until_true 10 failed
until_true 10 is_held nowhere
become linear /dev/nullb0 0
sleep 30
dmsetup status t
dmsetup status t | grep 'mtftl rw'
go erase
go nowhere
wait $writer
test "$(judge /dev/mapper/t 2000 1)" = 0
dmsetup status t | grep 'mtftl rw'
dmsetup remove t layer
mtftl check /dev/nullb0
