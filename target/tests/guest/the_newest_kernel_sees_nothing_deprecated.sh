#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The newest kernel warns once when a queue of a deprecated kind gets work; a suspend without flush
# has some.
#
# kernel: current
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 ftl
dmsetup suspend --nolockfs --noflush ftl
dmsetup resume ftl
mtftl close ftl
if dmesg | grep 'workqueue:.*deprecated'; then exit 1; fi
