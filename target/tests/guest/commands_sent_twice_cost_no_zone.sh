#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Completions are lost, the controller is reset, and the driver sends again what it got no answer
# to.
#
# clock: virtual
# cpus: 4
# profile: tlc
# device: small
# timeout: 300
# cases: on off

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 4 append $1)"
verify /dev/mapper/t --size=64M --io_size=256M --do_verify=1 --end_fsync=1 &
for turn in 1 2 3 4 5 6; do
	until [ "$(field written t)" -ge $((turn * 4096)) ]; do usleep 50000; done
	flash 0x18 1
	usleep 100000
	# What comes after the reset is answered: else it would be half a minute to the next.
	flash 0x18 0
	nvme reset /dev/nvme0
done
wait $!

dmsetup status t | grep 'mtftl rw'
echo "$(field write_errors t) writes failed"
test "$(field write_errors t)" -gt 0
test "$(field bad t)" = 0
verify /dev/mapper/t --size=64M --io_size=256M --verify_only=1
dmsetup remove t
mtftl check /dev/nvme0n1
