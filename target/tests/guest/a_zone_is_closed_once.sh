#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The drive keeps a zone's footer for long; a resume, which closes zones that a pause left, closes
# no other.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
holds close
put 0 0 480
until_true 10 is_held close
# It waits for the footer for five seconds.
dmsetup suspend --nolockfs --noflush t
dmsetup resume t
go close
until_true 10 saw 'closing -> full'
# Zones are closed one after the other.
put 1000 1000 480 ,fsync
closed() { test $(grep -c 'closing -> full' /sys/kernel/tracing/trace) -ge 2; }
until_true 10 closed
fails saw 'full -> full'
dmsetup remove t layer
mtftl check /dev/nullb0
test -z "$(dmesg | grep -i 'warning:')"
