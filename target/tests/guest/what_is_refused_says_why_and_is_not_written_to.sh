#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tables and messages that are wrong: each is refused with its reason, and the drive stays as it
# is.
#
# clock: virtual
# cpus: 2
# profile: none
# timeout: 600

set -e
. ./guest.sh

null nullb0 size=64
null nullb1 size=64 zoned=0
null nullb2 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
sum() { ./blocks sum /dev/nullb0; blkzone report /dev/nullb0 | md5sum; }
sum > before
# table_fails WORDS REASON
table_fails() {
	dmesg -c > /dev/null
	fails dmsetup create t --table "0 ${length:-8192} mtftl $1" 2> /dev/null
	dmesg | grep -F -q "$2" || { echo "table $1: expected $2"; dmesg; exit 1; }
	dmsetup remove t 2> /dev/null || true
}
# message_fails WORDS REASON
message_fails() {
	dmesg -c > /dev/null
	fails dmsetup message t 0 $1 2> /dev/null
	dmesg | grep -F -q "$2" || { echo "message $1: expected $2"; dmesg; exit 1; }
}
table_fails "" "Expected <device>"
table_fails "/dev/nosuch" "Cannot open the device"
table_fails "/dev/nullb1" "not zoned"
table_fails "/dev/nullb2" "No superblock found"
table_fails "/dev/nullb0 3 lanes 1" "Expected <device> [<number of words>"
table_fails "/dev/nullb0 2 lanes 0" "lanes is 0, expected percpu or 1 to 1024"
table_fails "/dev/nullb0 2 lanes many" "lanes is many, expected percpu or 1 to 1024"
table_fails "/dev/nullb0 2 buffer_entries 0" "buffer_entries is 0, expected"
table_fails "/dev/nullb0 2 write_unit 253" "write_unit is 253, expected 1 to 252"
table_fails "/dev/nullb0 2 gc_policy best" "gc_policy is best, expected greedy or cost-benefit"
table_fails "/dev/nullb0 2 placement best" "placement is best, expected none, hot-cold, by-age or by-life"
table_fails "/dev/nullb0 2 streams best" "placement is best, expected none, hot-cold, by-age or by-life"
table_fails "/dev/nullb0 2 append here" "append is here, expected on or off"
table_fails "/dev/nullb0 2 low_water 65536" "low_water is 65536, expected 0 to 65535"
table_fails "/dev/nullb0 2 colour blue" "option colour is not known, expected lanes, buffer_entries"
length=4096 table_fails /dev/nullb0 "length is 4096 sectors, expected"
sum | cmp - before
dmsetup create t --table "$(table /dev/nullb0)"
message_fails "nonsense" "message nonsense is not known, expected checkpoint"
message_fails "gc now" "message gc has 2 words, expected 1"
message_fails "low_water 1" "low_water is 1, expected"
message_fails "gc_policy best" "gc_policy is best, expected greedy or cost-benefit"
dmsetup remove t
