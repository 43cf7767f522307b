#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A checkpoint would wait for the resume; and a reload, which resumes too, for the message.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 2)"
dd if=/dev/zero of=/dev/mapper/t bs=64k count=100 oflag=direct status=none
dmsetup suspend --nolockfs --noflush t
fails timeout 20 dmsetup message t 0 checkpoint > said 2>&1
grep 'Device or resource busy' said
dmsetup load t --table "$(table /dev/nullb0 lanes 1)"
timeout 20 dmsetup resume t
dmsetup message t 0 checkpoint
dmsetup remove t
mtftl check /dev/nullb0
