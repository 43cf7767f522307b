#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# At each point of the module linger the next thread that comes there stands still, and it is one of
# those that the point is for. An interrupt that has such a thread's name does not.
#
# clock: virtual
# cpus: 1
# profile: tlc
# device: metadata ms=0
# needs: linger

set -e
. ./guest.sh

insmod ./linger.ko
at=/sys/module/linger/parameters/at
tracing=/sys/kernel/tracing
# The points for users are for threads whose names begin so.
cp "$(command -v dd)" torture
cp "$(command -v blkdiscard)" torture-discard
mtftl format --op 30% /dev/nvme0n1 > /dev/null
dmsetup create t --table "$(table /dev/nvme0n1 lanes 1)"
# Zones that hold dead blocks, and others that GC has to move.
dd if=/dev/zero of=/dev/mapper/t bs=1M count=8 oflag=direct conv=fsync status=none
for half in 0 2 4 6 8 10 12 14; do
	dd if=/dev/zero of=/dev/mapper/t bs=512k seek=$half count=1 oflag=direct conv=fsync,notrunc status=none
done

lingering() {
	stack=$(grep -ls '\[linger\]' /proc/[0-9]*/stack) || true
	[ "$stack" ]
}
# stands POINT NAME CALLER COMMAND...: for a second a thread whose name begins so, which CALLER has sent there
stands() {
	local point=$1 name=$2 caller=$3 job
	shift 3
	echo "$point 1000" > $at
	"$@" &
	job=$!
	until_true 5 lingering
	echo "$point: $(cat "${stack%stack}comm")"
	cat "$stack"
	grep -q "^$point 0$" $at
	grep -q "^$name" "${stack%stack}comm"
	sed '1,/\[linger\]/d; /\[linger\]/d' "$stack" | head -1 | grep -q " $caller"
	wait $job
	until_true 5 fails lingering
}
user_reads() { (exec -a dd ./torture if=/dev/mapper/t of=/dev/null bs=4k count=1 iflag=direct); }
# It has the lock of a lane.
user_writes() { (exec -a dd ./torture if=/dev/zero of=/dev/mapper/t bs=4k count=1 oflag=direct conv=notrunc); }
user_discards() { (exec -a blkdiscard ./torture-discard -l 4k /dev/mapper/t); }
trace() {
	echo "$1" > $tracing/set_ftrace_filter
	echo function > $tracing/current_tracer
}
# keeps_busy POINT COMMAND...: a thread that may not sleep there keeps its CPU, for 4 ms of the second
keeps_busy() {
	local point=$1
	shift
	trace __const_udelay
	echo "$point 1000" > $at
	"$@"
	grep "^$point 0$" $at
	grep 'torture-.*__const_udelay <-' $tracing/trace > delays
	cat delays
	test "$(wc -l < delays)" = 4
	echo nop > $tracing/current_tracer
}
write() { put 20000 8 1 ,fsync; }
message() { dmsetup message t 0 "$1"; }
# The next write to a zone of data fails: it is done again.
write_again() {
	flash 0x11 1024 15360 1 > /dev/null
	write
}

for point in lane-find lane-take lane-send; do stands $point mtftl/ "" write; done
stands lane-lock mtftl/ mtftl_map_ write
for point in sync flush; do stands $point "" "" message checkpoint; done
write
stands copy-unlock "" mtftl_map_durable message checkpoint
stands user-read torture "" user_reads
for point in user-lock user-unlock; do
	stands $point torture mtftl_map_ user_discards
	keeps_busy $point user_writes
done
for point in gc-find gc-take gc-send; do stands $point mtftl_gc/ "" message gc; done
stands manage "" "" message gc
for point in work-find work-send; do stands $point kworker/ "" write_again; done

# A write ends in an interrupt, upon a thread of that name, and takes the lock of the map.
echo "user-lock 1000" > $at
bash -c 'printf torture > /proc/$$/comm; while :; do :; done' &
spinner=$!
trace mtftl_map_complete
ends_upon_it() {
	write
	saw 'torture-.*\] ..[hHs].*: mtftl_map_complete'
}
until_true 2 ends_upon_it
kill $spinner
grep '^user-lock 1000$' $at
stands user-lock torture mtftl_map_ user_discards

dmsetup remove t
mtftl check /dev/nvme0n1
