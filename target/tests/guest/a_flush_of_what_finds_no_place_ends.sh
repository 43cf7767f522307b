#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A lane is refused for ever. A flush waits for it, and the resets that would give it a place for
# the flush.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 64 ,fsync
holds place
put 64 64 32
sync /dev/mapper/t &
is_read_only() { dmsetup status t | grep -q 'mtftl read-only'; }
until_true 60 is_read_only
fails wait $!
dmesg | grep 'read-only: no zone is left from which space could be gained'
test "$(judge /dev/mapper/t 0 96)" = 0
dmsetup remove t
