#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One failed write costs no zone. One that fails again after its reset does, and what it held is
# moved.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# timeout: 400

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
dd if=/dev/zero of=/dev/mapper/t bs=1M count=1 oflag=direct conv=fsync status=none
overwrite() { verify /dev/mapper/t --size=100% --io_size=256M --do_verify=1 --end_fsync=1; }
zone=$(zones /dev/nvme0n1 | awk '$3 == 2 { start = $1 } END { print start / 8 }')
flash 0x11 $zone 2048 1
overwrite
overwrite
test "$(field write_errors t)" = 1
test "$(field bad t)" = 0
flash 0x11 $zone 2048 0
for turn in 1 2 3 4 5 6 7 8; do [ "$(field bad t)" = 1 ] || overwrite; done
test "$(field bad t)" = 1
test "$(field write_errors t)" -ge 3
overwrite
test "$(field bad t)" = 1
dmsetup remove t
mtftl check /dev/nvme0n1
