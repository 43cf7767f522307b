#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A suspend sleeps before device-mapper holds bios: bios that must not block are not given back
# until it does.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# timeout: 200
# needs: hold

set -e
. ./guest.sh

mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2 buffer_entries 128)"
fio --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --numjobs=2 \
	--time_based --runtime=60 --name=job --output=fio.log --eta=never &
job=$!
usleep 50000
holds presuspend probe
echo mtftl_lanes_give_back > /sys/kernel/tracing/set_ftrace_filter
echo function > /sys/kernel/tracing/current_tracer
given_back() { grep -q 'mtftl_lanes_give_back <-' /sys/kernel/tracing/trace; }
dmsetup suspend --nolockfs --noflush t &
suspend=$!
until_true 10 is_held presuspend
# An error of another kind says nothing.
until_true 10 is_held probe
usleep 20000
fails given_back
go probe
usleep 20000
fails given_back
go presuspend
wait $suspend
given_back
usleep 20000
dmsetup resume t
usleep 20000
kill -0 $job
killall -INT fio
wait $job || true
cat fio.log
fails grep 'err=[^ ]*[1-9]' fio.log
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
