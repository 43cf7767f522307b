# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the target's tests inside a guest: devices, tables, work, layers, and places where threads are held.

# set -e ends a test without a word: say which command failed, and the lines that led to it. Subshells leave it to the
# test itself.
set -E
trap 'tell_failure $?' ERR
tell_failure() {
	local status=$1 depth text
	[[ $- = *e* && $BASHPID = "$$" ]] || return 0
	echo "failed with status $status:" >&2
	for ((depth = ${#FUNCNAME[@]} - 1; depth > 0; depth--)); do
		text=$(sed -n "${BASH_LINENO[depth - 1]}p" "${BASH_SOURCE[depth]}" 2> /dev/null) || true
		echo "  ${FUNCNAME[depth]}: ${text#"${text%%[![:space:]]*}"}" >&2
	done
}

# null NAME KEY=VALUE...: a zoned null_blk that keeps its data, at /dev/NAME
null() {
	local name=$1 folder=/sys/kernel/config/nullb/$1 pair
	shift
	[ -d /sys/kernel/config/nullb ] || modprobe -q null_blk nr_devices=0
	mkdir "$folder"
	for pair in memory_backed=1 zoned=1 blocksize=4096 zone_size=4 size=256 "$@"; do
		echo "${pair#*=}" > "$folder/${pair%%=*}"
	done
	echo 1 > "$folder/power"
	while [ ! -b "/dev/$name" ]; do usleep 1000; done
}

# flash ACTION A [B [C]]: the emulator's vendor command; it must succeed. The drive is nvme0, or what $controller names.
flash() {
	local said
	said=$(nvme admin-passthru "${controller:-/dev/nvme0}" --opcode=0xc0 --namespace-id=1 --cdw10="$1" --cdw11="$2" \
		--cdw13="${3:-0}" --cdw15="${4:-0}" 2>&1) || true
	echo "$said"
	echo "$said" | grep -qi success
}

# cut_machine: the power of all drives goes, at one instant; power_on: they are there again, and new to the kernel
cut_machine() { flash 0x1 0; }
power_on() {
	local drive address
	for drive in /sys/class/nvme/nvme*; do
		controller=/dev/${drive##*/} flash 0x0 0
		address=$(basename "$(readlink "$drive/device")")
		echo "$address" > /sys/bus/pci/drivers/nvme/unbind
		echo "$address" > /sys/bus/pci/drivers/nvme/bind
		until [ -b "/dev/${drive##*/}n1" ]; do usleep 1000; done
	done
}

# members N: t0 to tN-1, on as many drives, which are formatted; open_members N: the same as they are
members() {
	local i
	for ((i = 0; i < $1; i++)); do
		mtftl format --op 30% /dev/nvme${i}n1 > /dev/null
	done
	open_members "$1"
}
open_members() {
	local i
	for ((i = 0; i < $1; i++)); do
		dmsetup create t$i --table "$(table /dev/nvme${i}n1 lanes 2)"
	done
}

# array LEVEL MEMBER...: /dev/md0 of them, which are empty; md_is STATE: its members, as U_ of /proc/mdstat
export MDADM_NO_UDEV=1
array() {
	local level=$1
	shift
	mdadm --create /dev/md0 --run --quiet --assume-clean --level="$level" --raid-devices=$# "${@/#//dev/mapper/}"
}
md_is() { grep -q "\[$1\]$" /proc/mdstat; }
# mismatches: sectors in which the copies or parities of md0 differ
mismatches() {
	echo check > /sys/block/md0/md/sync_action
	until_true 60 grep -q idle /sys/block/md0/md/sync_action
	cat /sys/block/md0/md/mismatch_cnt
}

# sectors DEVICE: the length that a table line for it must have
sectors() {
	echo $(($(dd if="$1" bs=4096 count=1 iflag=direct status=none | od -An -tu8 -j56 -N8) * 8))
}

# table DEVICE [OPTION VALUE]...
table() {
	local device=$1
	shift
	echo "0 $(sectors "$device") mtftl $device $# $*"
}

# zones DEVICE: of each the start, how far it is written (sectors), and its condition
zones() {
	local start written condition
	blkzone report "$1" |
		sed -E 's/.*start: (0x[0-9a-f]+),.*wptr (0x[0-9a-f]+) .*zcond: *([0-9]+).*/\1 \2 \3/' |
		while read -r start written condition; do
			echo $((start)) $((written)) "$condition"
		done
}

# verify FILE [FIO OPTION]...: random overwrites, all of them checked
verify() {
	local file=$1
	shift
	fio --name=verify --filename="$file" --direct=1 --rw=randwrite --ioengine=io_uring --iodepth=16 \
		--bsrange=4k-128k --verify=crc32c --verify_fatal=1 --verify_dump=0 --output=fio.log "$@" ||
		{ cat fio.log; return 1; }
}

# field NAME DEVICE: a value of the status line
field() {
	local line
	line=$(dmsetup status "$2")
	line=${line#* "$1" }
	echo "${line%% *}"
}

# fail_checkpoint_zones DISK DEVICE: the zones set aside for checkpoints turn read-only, until both have retired. The one
# that the log was written to is left, and judged when the log comes round to it: once its successor is full.
fail_checkpoint_zones() {
	local zone i
	for zone in 2 3; do echo $((zone * 8192)) > "/sys/kernel/config/nullb/${1##*/}/zone_readonly"; done
	for ((i = 0; i < 600 && $(field bad "$2") < 2; i++)); do dmsetup message "$2" 0 checkpoint; done
	test "$(field bad "$2")" = 2
}

# until_true LIMIT COMMAND...: true within so many seconds
until_true() {
	local limit=$(($1 * 100))
	shift
	for _ in $(seq $limit); do
		! "$@" > /dev/null 2>&1 || return 0
		usleep 10000
	done
	dmsetup status t
	dmesg | tail -5
	return 1
}

# gained [BEFORE]: GC of t has emptied more zones than that
gained() {
	[ "$(field victims t)" -gt "${1:-0}" ]
}

# fails COMMAND...: it must. A line that begins with ! asserts nothing under set -e.
fails() {
	! "$@"
}

# hangs PROCESS: wait until it waits for a device
hangs() {
	until grep -q '^State:.*D' "/proc/$1/status"; do usleep 1000; done
}

# hundredths: of a second, since the boot
hundredths() {
	local now rest
	read -r now rest < /proc/uptime
	echo $((10#${now/./}))
}

# take_cpu: a real-time task has CPU 1 for itself until return_cpu, or for 20 s; what ends it then is on CPU 0
take_cpu() {
	rm -f returned
	echo -1 > /proc/sys/kernel/sched_rt_runtime_us
	taskset 1 chrt -f 60 bash -c '
		taskset 2 chrt -f 50 bash -c "while :; do :; done" &
		hog=$!
		for i in $(seq 200); do [ ! -e returned ] || break; usleep 100000; done
		kill -9 $hog' &
	guard=$!
	usleep 100000
}

return_cpu() {
	touch returned
	wait $guard
	echo 950000 > /proc/sys/kernel/sched_rt_runtime_us
}

# wait_for TEXT: until the status line of t has it, for a minute at most
wait_for() {
	for _ in $(seq 600); do
		[[ ! "$(dmsetup status t)" =~ $1 ]] || return 0
		usleep 100000
	done
	dmsetup status t
	return 1
}

# quiet DRIVE MICROSECONDS: nothing is written to it so long. A flush, which the kernel counts as a write too, may end.
written() { awk '{ print $5 - $16 }' "/sys/class/block/$1/stat"; }
quiet() {
	local before after
	before=$(written "$1")
	usleep "$2"
	after=$(written "$1")
	echo "$before $after"
	test "$before" = "$after"
}

# silent COMMAND...: while it runs no command reaches a drive
silent() {
	echo 0 > /sys/kernel/tracing/tracing_on
	echo > /sys/kernel/tracing/trace
	echo 1 > /sys/kernel/tracing/events/block/block_rq_issue/enable
	echo 1 > /sys/kernel/tracing/tracing_on
	"$@"
	echo 0 > /sys/kernel/tracing/events/block/block_rq_issue/enable
	! grep block_rq_issue /sys/kernel/tracing/trace | head -5 | grep .
}

# heard COMMAND...: device-mapper tells of it within three seconds
heard() {
	local event job
	event=$(dmsetup info -c --noheadings -o events t)
	timeout 3 dmsetup wait t "$event" > /dev/null &
	job=$!
	"$@"
	wait $job
}

# says TEXT: the kernel's log has it; saw TEXT: the trace has it
says() { dmesg | grep -q "$1"; }
saw() { grep -q "$1" /sys/kernel/tracing/trace; }

# numbered FIRST COUNT: each block says which one it is
numbered() { ./blocks write "$1" "$2"; }
# judge DEVICE FIRST COUNT: blocks that read as errors; none may read as anything but what numbered() put there
judge() { ./blocks judge "$1" "$2" "$3"; }

# copy FROM TO [ZONE BLOCKS]: each zone as far as it is written, of ZONE so many blocks less: as a cut leaves it.
# Or to a file, or from one, as far as $layout is written.
copy() {
	local start written condition number=0 blocks flags="conv=notrunc iflag=skip_bytes,count_bytes oflag=seek_bytes"
	[ ! -b "$1" ] || flags+=" iflag=direct"
	[ ! -b "$2" ] || flags+=" oflag=direct"
	while read -r start written condition; do
		blocks=$((written / 8))
		[ "$condition" != 14 ] || blocks=1024
		[ "$number" != "$3" ] || blocks=$((blocks - $4))
		number=$((number + 1))
		[ $blocks -gt 0 ] || continue
		dd if="$1" of="$2" bs=64k skip=$((start * 512)) seek=$((start * 512)) count=$((blocks * 4096)) $flags status=none
	done < <(zones "${layout:-$1}")
}

# job FIO-OPTION...: with eight requests in flight on t
job() {
	fio --name=job --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --norandommap \
		--output=fio.log "$@"
}

# scattered: t with two lanes, full, and then a tenth of it overwritten at random
scattered() {
	mtftl format --op 30% /dev/nvme0n1 > /dev/null
	dmsetup create t --table "$(table /dev/nvme0n1 lanes 2)"
	fill --rw=write --bs=64k
	fill --rw=randwrite --bs=4k --io_size=10%
	sync /dev/mapper/t
}
fill() {
	fio --name=fill --filename=/dev/mapper/t --direct=1 --ioengine=io_uring --iodepth=8 --output=fio.log \
		--eta=never "$@"
}

# keep_writing: t with two lanes, written at random by $job until written_without_error: no write has failed
keep_writing() {
	mtftl format --op 30% /dev/nvme0n1 > /dev/null
	dmsetup create t --table "$(table /dev/nvme0n1 lanes 2 buffer_entries 128)"
	fio --filename=/dev/mapper/t --direct=1 --rw=randwrite --bs=4k --ioengine=io_uring --iodepth=64 --numjobs=2 \
		--time_based --runtime=60 --name=job --output=fio.log --eta=never &
	job=$!
}
written_without_error() {
	kill -0 $job
	killall -INT fio
	wait $job || true
	cat fio.log
	fails grep 'err=[^ ]*[1-9]' fio.log
}

# Layers over nullb0 that change what the target sees of it.

# become_table NAME: the device-mapper device gets the table of its input, at once; it is made if it is not there
become_table() {
	if dmsetup info "$1" > /dev/null 2>&1; then
		dmsetup load "$1"
		dmsetup suspend --nolockfs --noflush "$1"
		dmsetup resume "$1"
	else
		dmsetup create "$1"
	fi
}

# become TARGET...: what is behind /dev/mapper/layer, as "linear /dev/nullb0 0"
become() { echo "0 $(cat /sys/class/block/nullb0/size) $*" | become_table layer; }

# flaky_is DOWN [FEATURE]...: from now on /dev/mapper/flaky fails, in all or as said; flaky_is 0: it works
flaky_is() {
	local down=$1
	shift
	echo "0 $(cat /sys/class/block/nullb0/size) flakey /dev/nullb0 0 $((down ? 0 : 1)) $down $# $*" | become_table flaky
}

# zone_is ZONE FEATURE...: a zone of 4 MiB of /dev/mapper/flaky is flakey, in all or as said; zone_is ZONE error: it
# cannot be reset either; zone_is -: none is. $base is below, or nullb0.
zone_is() {
	local base=${base:-/dev/nullb0} zone=$1 size
	size=$(cat "/sys/class/block/${base#/dev/}/size")
	shift
	{
		if [ "$zone" = - ]; then
			echo "0 $size linear $base 0"
		else
			echo "0 $((zone * 8192)) linear $base 0"
			case "$*" in
			error) echo "$((zone * 8192)) 8192 error $base $((zone * 8192))";;
			*) echo "$((zone * 8192)) 8192 flakey $base $((zone * 8192)) 0 3600 $# $*";;
			esac
			echo "$(((zone + 1) * 8192)) $((size - (zone + 1) * 8192)) linear $base $(((zone + 1) * 8192))"
		fi
	} | become_table flaky
}

# layered: t with one lane on 32 zones of 1 MiB behind a layer, which cut_power takes away; put, and ends
layered() {
	null nullb0 size=32 zone_size=1
	become linear /dev/nullb0 0
	mtftl format --op 30% /dev/mapper/layer > /dev/null
	open_t /dev/mapper/layer
}
open_t() { dmsetup create t --table "$(table "$1" lanes 1 gc_policy greedy)"; }
# put FIRST AT COUNT [CONVERSION]: blocks that say they are FIRST and on
put() {
	numbered "$1" "$3" |
		dd of=/dev/mapper/t bs=4k seek="$2" iflag=fullblock oflag=direct conv=notrunc"$4" status=none
}
cut_power() {
	local what
	dmsetup wipe_table layer
	for what in $held; do go "$what"; done
	dmsetup remove t
	open_t /dev/nullb0
}
ends() {
	dmsetup remove t
	mtftl check /dev/nullb0
}

# zones_apart [KEY=VALUE]...: /dev/mapper/layer with 32 zones of 1 MiB of nullb0, each a device zoneN of its own; what
# is sent to it waits as long as that is suspended. cut_zones: the layer is gone, t is on nullb0
zones_apart() {
	local zone
	null nullb0 size=32 zone_size=1 "$@"
	for zone in $(seq 0 31); do
		dmsetup create zone$zone --table "0 2048 linear /dev/nullb0 $((zone * 2048))"
		echo "$((zone * 2048)) 2048 linear /dev/mapper/zone$zone 0"
	done > layer.table
	dmsetup create layer layer.table
	mtftl format --op 30% /dev/mapper/layer > /dev/null
	open_t /dev/mapper/layer
}
cut_zones() {
	dmsetup wipe_table layer
	dmsetup remove t
	dmsetup remove_all
	open_t /dev/nullb0
}
# with_room: data zones that are open, and half empty at least
with_room() { zones /dev/nullb0 | awk 'NR > 4 && $3 == 2 && $2 < 1024 { print NR - 1 }'; }
# waits PROCESS FUNCTION: it sleeps in there; PROCESS may be *
waits() { grep -qs "$2" /proc/$1/stack; }

# layered_units: t with one lane, and units of one block, on a layer over nullb0
layered_units() {
	become linear /dev/nullb0 0
	line=$(table /dev/mapper/layer lanes 1 write_unit 1 buffer_entries 128)
	dmsetup create t --table "$line"
}
# fill_with BYTE AT COUNT CONVERSION: blocks of t
fill_with() {
	tr '\0' "$1" < /dev/zero |
		dd of=/dev/mapper/t bs=4k seek="$2" count="$3" iflag=fullblock oflag=direct "$4" status=none
}
# drop_writes: what the target has not sent is lost, and t is mounted again
drop_writes() {
	become flakey /dev/nullb0 0 0 3600
	dmsetup remove t
	become linear /dev/nullb0 0
	dmsetup create t --table "$line"
}
first_byte_is_zero() {
	local found
	found=$(dd if=/dev/mapper/t bs=4k count=1 iflag=direct status=none | head -c 1 | od -An -tu1)
	echo "found $found"
	test "$found" -eq 0
}

# holds WHAT...: the next one that comes to such a place in the target waits there until go WHAT; see hold/hold.c
holds() {
	insmod ./hold.ko "${@/#/what=}"
	held=$*
	echo 1 > /sys/kernel/tracing/events/mtftl/enable
}
is_held() { grep -q "$1" /sys/module/hold/parameters/held; }
go() { echo "$1" > /sys/module/hold/parameters/go; }

# reset_begins ZONE FUNCTION: GC has emptied it; its reset waits in there, or should have
reset_begins() {
	until_true 10 saw "zone $1 victim -> resetting"
	until_true 10 reset_waits "$1" "$2"
}
reset_waits() { saw "zone $1 resetting -> empty" || grep -qs "$2" /proc/*/stack; }

# slow_drive: make the drive so slow that its last flush and checkpoint take seconds, and print a table for it
slow_drive() {
	local die
	mtftl format --op 30% /dev/nvme0n1 > /dev/null
	table /dev/nvme0n1 lanes 2
	for die in 0 1 2 3; do flash 0x17 $die 30000; done > /dev/null
}

# trace_mounts: each mount's beginning and its end, in the order in which they happened
trace_mounts() {
	echo mtftl_device_prepare mtftl_recover mtftl_device_unprepare > /sys/kernel/tracing/set_ftrace_filter
	echo function > /sys/kernel/tracing/current_tracer
}
