#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What IMA gets: name, version, device and options, as other targets write it.
#
# clock: virtual
# cpus: 2
# profile: none
# judge: test_faults.py

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1 gc_policy greedy)"
dmsetup table t
dmsetup measure t
dmsetup remove t
