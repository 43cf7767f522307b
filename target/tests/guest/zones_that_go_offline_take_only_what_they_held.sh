#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Three zones go offline under GC: their blocks read as errors until they are written again,
# others are right.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# timeout: 400

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
blocks=$(($(blockdev --getsz /dev/mapper/t) / 8))
work="--size=100% --randseed=2 --io_size=$((3 * 4096 * blocks))"
read_all() {
	verify /dev/mapper/t $work --verify_only=1 --continue_on_error=read --verify_fatal=0
	grep 'errors *: total=' fio.log
}
verify /dev/mapper/t --size=100% --rw=write --do_verify=0
start=$(field written t)
verify /dev/mapper/t $work --do_verify=0 --eta=never &
# Late in the third overwrite: not all that is lost is written again.
for tenths in 24 26 28; do
	until [ "$(field written t)" -ge $((start + tenths * blocks / 10)) ]; do usleep 50000; done
	flash 0x16 "$(zones /dev/nvme0n1 | awk '$3 == 14 && $1 >= 65536 { print $1 / 8; exit }')"
done
wait $!
test "$(field victims t)" -gt 0
dmsetup status t | grep 'mtftl rw'
read_all > before
grep 'total= *[1-9]' before
dmsetup remove t
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
read_all | cmp - before
verify /dev/mapper/t --size=100% --rw=write --do_verify=1
test "$(field bad t)" = 3
dmsetup remove t
mtftl check /dev/nvme0n1
