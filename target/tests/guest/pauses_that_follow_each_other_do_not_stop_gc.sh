#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GC moves and resets a victim though each pause begins before what it reads has come.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small flash.read_ns=10000000 flash.program_ns=10000000 flash.suspend=on flash.buffer=0

set -e
. ./guest.sh

scattered
before=$(field victims t)
trace=/sys/kernel/tracing
echo 1 > $trace/events/mtftl/mtftl_zone_state/enable
dmsetup message t 0 gc
for turn in $(seq 400); do
	timeout 4 dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
	! saw 'resetting -> empty' || break
done
echo "$turn pauses"
grep mtftl_zone_state $trace/trace
fails saw 'victim -> full'
gained $before
saw 'resetting -> empty'
dmsetup remove t
mtftl check /dev/nvme0n1
