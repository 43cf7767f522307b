#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Three jobs write in order, in turn. What each writes lies together, except at the beginning.
#
# clock: virtual
# cpus: 2
# profile: none
# pull: dump.json
# judge: test_target.py

set -e
. ./guest.sh

null nullb0 size=1024
mtftl format /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 4)"
for i in $(seq 0 63); do for writer in 0 1 2; do
	dd if=/dev/zero of=/dev/mapper/t bs=32k seek=$((writer * 1000 + i)) count=1 oflag=direct conv=fsync 2> /dev/null
done; done
dmsetup remove t
mtftl dump --units /dev/nullb0 > dump.json
