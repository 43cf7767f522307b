#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mtftl watch tells of zones that fail, of spare that is short, of lost blocks and of a device that
# turns read-only: each once, on its output, to the journal and to udev, and mtftl status says it too.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: journal

set -e
. ./guest.sh

null nullb0 size=64
mtftl format --op 40% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t lanes=1
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none

mtftl watch t > said &
plain=$!
# Without a journal, what it would be told is on the output.
mtftl watch --journal t > unheard 2> complaint &
alone=$!
until_true 10 waits $plain dm_wait_event
until_true 10 waits $alone dm_wait_event
test ! -s said

told() { grep -qs "$@"; }
fail_checkpoint_zones /dev/nullb0 t
until_true 10 told '^t: 2 zones have failed; advice: look at ' said
until_true 10 told '^t: 2 zones have failed; ' unheard
grep '^mtftl: t: the journal takes no message: No such file or directory$' complaint
kill $alone

mkdir -p /run/systemd/journal
./journal /run/systemd/journal/socket > messages &
heard=$!
until_true 10 test -S /run/systemd/journal/socket
uevent env > uevents 2>&1 &
listener=$!
until_true 10 grep -q '^[0-9a-f]* 15 *[1-9]' /proc/net/netlink
mtftl watch --journal --udev t > none &
told_all=$!
# What is wrong already is told first.
until_true 10 told '^MESSAGE=t: 2 zones have failed; ' messages
until_true 10 told 'SYNTH_ARG_MTFTL=failedzones' uevents
until_true 10 waits $told_all dm_wait_event

lost() { [ "$(field lost t)" -gt 0 ]; }
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_offline
dmsetup message t 0 gc
until_true 10 lost
until_true 10 told '^MESSAGE=t: [0-9]* blocks could not be read any more and are lost; ' messages

for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
turned() {
	dmsetup message t 0 checkpoint 2> /dev/null || true
	dmsetup status t | grep 'mtftl read-only'
}
until_true 10 turned
until_true 10 told '^MESSAGE=t is read-only, ' messages
until_true 10 told '^t is read-only, ' said
until_true 10 told 'SYNTH_ARG_MTFTL=readonly' uevents

# status says the same.
for condition in read-only lost-blocks failed-zones; do
	mtftl status --json t | grep -q "\"$condition\""
done

# A watch ends when its device is closed, and does not keep it from that.
fails mtftl close --force t
wait $plain
wait $told_all

# Half of the spare zones are found to have failed at the mount.
null nullb1
mtftl format /dev/nullb1 > /dev/null
for zone in $(seq 40 48); do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb1/zone_readonly; done
mtftl open /dev/nullb1 s lanes=1
mtftl watch --journal --udev s > none &
told_all=$!
until_true 10 told '^MESSAGE=s: only 9 of 18 spare zones are left; ' messages
until_true 10 told 'SYNTH_ARG_MTFTL=shortofspare' uevents
mtftl status --json s | grep -q '"short-of-spare"'
mtftl close s
wait $told_all

# Each message has what journalctl and the catalog look for.
cat messages said
for condition in read-only lost-blocks short-of-spare failed-zones; do
	grep "^MTFTL_CONDITION=$condition\$" messages
done
test "$(grep -c '^MESSAGE_ID=[0-9a-f]\{32\}$' messages)" = "$(grep -c '^MESSAGE=' messages)"
test "$(grep -c '^MTFTL_NAME=[ts]$' messages)" = "$(grep -c '^MESSAGE=' messages)"
test "$(grep -c '^MESSAGE=t is read-only' messages)" = 1
test ! -s none
kill $heard $listener
