#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A table is printed in today's words: each form that they replaced is accepted with a warning that
# names the new one.
#
# clock: virtual
# cpus: 2
# profile: none

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
old() { dmesg | grep -c 'is an old form' || true; }
warned() { dmesg | grep -F -q "0: option $1 is an old form, which the next release will refuse, expected $2"; }
dmsetup create t --table "$(table /dev/nullb0 lanes 2 streams hot-cold placement write)"
warned 'streams hot-cold' 'placement hot-cold'
warned 'placement write' 'append off'
test "$(old)" = 2
line=$(dmsetup table t)
echo "$line" | grep -E ' 16 lanes 2 .* gc_policy cost-benefit placement hot-cold write_hints on append off low_water [0-9]+$'
dmsetup load t --table "${line/placement hot-cold write_hints on append off/streams none write_hints off placement append}"
dmsetup resume t
warned 'streams none' 'placement none'
warned 'placement append' 'append on'
test "$(old)" = 4
dmsetup table t | grep ' placement none write_hints off append on '
dmsetup load t --table "$line"
dmsetup resume t
test "$(dmsetup table t)" = "$line"
dmsetup remove t
mtftl open /dev/nullb0 t placement=by-age append=off write_hints=off
test "$(old)" = 4
dmsetup table t | grep ' placement by-age write_hints off append off '
mtftl close t
mtftl open /dev/nullb0 t streams=by-age
test "$(old)" = 5
mtftl close t
