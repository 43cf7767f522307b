#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each write fails, and the drive says that it has finished the zone: that must not go on for
# ever.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 10000 0 64 ,fsync
holds full
become flakey /dev/nullb0 0 0 3600 1 error_writes
{ put 20000 0 16 ,fsync || touch failed; } 2> /dev/null &
writer=$!
read_only() { dmsetup status t | grep 'mtftl read-only'; }
until_true 20 read_only
wait $writer
test -e failed
test "$(field write_errors t)" -le 10
become linear /dev/nullb0 0
dmsetup remove t layer
mtftl check /dev/nullb0
