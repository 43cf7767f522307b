#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A mount's helper does not come back for long, as if the drive kept its read. The kernel's detector
# of hung tasks tells of no task.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

# A map of several parts.
null nullb0
mtftl format --op 30% /dev/nullb0 > /dev/null
line="$(table /dev/nullb0 lanes 1)"
holds own help
echo 10 > /proc/sys/kernel/hung_task_timeout_secs
dmsetup create t --table "$line" &
mount=$!
# It has one part, and so another one is left for the helper.
until_true 10 is_held own
until_true 10 is_held help
# If the detector finds a task, the guest panics: the lab boots guests so.
test "$(cat /proc/sys/kernel/hung_task_panic)" = 1
go own
usleep 30000000
kill -0 $mount
go help
wait $mount
dmsetup remove t
mtftl check /dev/nullb0
