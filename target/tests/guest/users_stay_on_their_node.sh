#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A user that writes alone goes to an idle neighbour's lane, but not to one on the other node, even
# if that is next.
#
# clock: virtual
# cpus: 4
# memory_model: server2
# profile: none
# pull: dump.json
# judge: test_target.py

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
for cpu in 1 3; do
	taskset $((1 << cpu)) dd if=/dev/zero of=/dev/mapper/t bs=4k seek=$((cpu * 1000)) count=100 oflag=direct
done
dmsetup remove t
mtftl dump --units /dev/nullb0 > dump.json
