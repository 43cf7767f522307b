#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What waits goes back when device-mapper holds it: until then that sends it again, and may say
# EAGAIN.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: small
# append: preempt=full

set -e
. ./guest.sh

keep_writing
for turn in $(seq 100); do
	usleep $((3000 + turn * 7))
	dmsetup suspend --nolockfs --noflush t
	dmsetup resume t
done
written_without_error
# The kernel closes io_uring's files after their process.
until_true 1 dmsetup remove t
mtftl check /dev/nvme0n1
