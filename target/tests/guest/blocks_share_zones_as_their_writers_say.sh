#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Writes that say how long their data will live take turns. Blocks of one hint share zones.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hinted
# pull: dump.json
# judge: test_target.py

set -e
. ./guest.sh

null nullb0 size=512
mtftl format /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 write_hints "$1")"
./hinted /dev/mapper/t 256 32 2 3 4
dmsetup remove t
mtftl dump --units /dev/nullb0 > dump.json
