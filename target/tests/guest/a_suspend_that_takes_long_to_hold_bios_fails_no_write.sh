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
# needs: hold

set -e
. ./guest.sh

keep_writing
usleep 50000
# Without a place no lane writes, so bios wait until they are given back.
holds presuspend probe place
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
until_true 10 given_back
go place
wait $suspend
usleep 20000
dmsetup resume t
usleep 20000
written_without_error
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
