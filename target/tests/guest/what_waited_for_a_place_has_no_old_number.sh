#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# GC moves a block while a lane waits for a place; what users write to the block then is there
# after a cut.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: hold

set -e
. ./guest.sh

layered
put 10000 0 720 ,fsync
put 10100 100 140 ,fsync
put 10300 300 120 ,fsync
holds place
put 1000 1000 1
until_true 10 is_held place
dmsetup message t 0 gc
until_true 10 gained
fails saw 'submitted: .* data'
put 0 0 100
go place
# A place appears.
dmsetup message t 0 gc
until_true 10 gained 1
sync /dev/mapper/t
cut_power
test "$(judge /dev/mapper/t 0 100)" = 0
ends
