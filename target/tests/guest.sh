# SPDX-License-Identifier: GPL-2.0
# Sourced by the target's tests inside a guest: devices, tables, work.

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

# until_true LIMIT COMMAND...: true within so many seconds
until_true() {
	local limit=$(($1 * 100)) i
	shift
	for i in $(seq $limit); do
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
