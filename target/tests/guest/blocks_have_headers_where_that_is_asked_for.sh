#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# An option of format puts headers into blocks on a drive whose metadata would take them.
#
# clock: virtual
# cpus: 2
# profile: tlc
# device: metadata ms=16

set -e
. ./guest.sh

drive=/dev/nvme0n1
mtftl format --headers blocks $drive > said
fails grep metadata said
dmsetup create t --table "$(table $drive append on)"
verify /dev/mapper/t --size=100% --io_size=80M --do_verify=1
test "$(field flash_headers t)" -gt 0
dmsetup remove t
mtftl check $drive
