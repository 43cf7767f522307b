#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A thread that completes a unit loses its CPU after the unit has landed: the lane must not be
# freed yet.
#
# Drivers do that: nvme-tcp, and nvme with threaded interrupts.
#
# clock: virtual
# cpus: 2
# profile: none
# append: preempt=full
# needs: hold

set -e
. ./guest.sh

layered
holds late landed
put 0 0 1
until_true 10 is_held landed
dmsetup remove t &
remove=$!
sleep 1
ended=$(kill -0 $remove 2> /dev/null && echo no || echo yes)
go landed
wait $remove
echo "removed before: $ended"
test $ended = no
open_t /dev/mapper/layer
test "$(judge /dev/mapper/t 0 1)" = 0
dmsetup remove t layer
mtftl check /dev/nullb0
