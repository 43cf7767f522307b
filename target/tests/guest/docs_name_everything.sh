#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The status, options, messages and tracepoints are those in docs/use/.
#
# clock: virtual
# cpus: 2
# profile: none
# judge: test_target.py

set -e
. ./guest.sh

null nullb0
mtftl format /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0)"
echo status $(dmsetup status t | cut -d' ' -f5-)
echo table $(dmsetup table t | cut -d' ' -f6-)
dmsetup message t 0 no-such 2> /dev/null ||
	dmesg | sed -n 's/.*expected \(.*\) or \(.*\)/message \1, \2/p' | tail -1
echo trace $(ls -d /sys/kernel/tracing/events/mtftl/*/)
dmsetup remove t
