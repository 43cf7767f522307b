#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# All that GC moves waits for a zone, and the reset that would give one has failed: only GC tries it
# again.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 0 0 4096 ,fsync
put 0 0 300 ,fsync
for i in $(seq 1 12); do put $((i * 300)) $((i * 300)) 50 ,fsync; done
holds starve reset
dmsetup message t 0 gc
until_true 10 is_held reset
zone=$(grep -o 'zone [0-9]* victim -> resetting' /sys/kernel/tracing/trace)
# Until GC has one victim more than there is room for.
taken() { grep -c 'full -> victim' /sys/kernel/tracing/trace; }
more() { test $(taken) -gt $before; }
before=0
while more; do
	before=$(taken)
	dmsetup message t 0 gc
	until_true 1 more || break
done
until_true 10 is_held starve
go reset
until_true 10 saw "${zone%% victim*} resetting -> empty"
go starve
cut_power
test "$(judge /dev/mapper/t 0 4096)" = 0
ends
