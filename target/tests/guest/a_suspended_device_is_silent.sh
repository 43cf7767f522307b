#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Messages that would take commands are refused, others are not; from the suspend to the resume
# none is sent.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# cases: flush noflush

set -e
. ./guest.sh

how=
[ "$1" = flush ] || how=--noflush
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct status=none
refused() {
	for message in checkpoint gc; do
		fails dmsetup message t 0 $message 2> said
		grep 'Device or resource busy' said
	done
	dmsetup message t 0 low_water $(($(field reserve t) + 2))
	dmsetup message t 0 gc_policy greedy
	dmsetup message t 0 latency
	dmsetup message t 0 reset_stats
	dmsetup status t
	usleep 500000
}
dmsetup suspend --nolockfs $how t
silent refused
dmsetup resume t
dmsetup message t 0 checkpoint
dmsetup message t 0 gc
dmsetup remove t
mtftl check /dev/nvme0n1
