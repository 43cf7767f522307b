#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A Prometheus beside the node exporter sees the target's counters, before and after a change, and
# the histogram of waits. Each alert fires when its condition is brought about.
#
# clock: virtual
# cpus: 2
# profile: none
# needs: prometheus
# timeout: 900

set -e
. ./guest.sh

# publish: what the timer does
publish() { mtftl metrics --output text/mtftl.prom; }
# soon COMMAND...: true within a minute; each look costs a process or two
soon() {
	for _ in $(seq 60); do
		! "$@" || return 0
		sleep 1
	done
	wget -q -O - 'http://127.0.0.1:9090/api/v1/alerts'
	cat exporter.log prometheus.log
	return 1
}
# query EXPRESSION: its one value
query() {
	wget -q -O - "http://127.0.0.1:9090/api/v1/query?query=$1" | sed -n 's/.*"value":\[[0-9.e+]*,"\([^"]*\)"\].*/\1/p'
}
# sees EXPRESSION VALUE
sees() { [ "$(query "$1")" = "$2" ]; }
# fires ALERT...
fires() {
	local alert
	for alert in "$@"; do
		[ "$(query "count(ALERTS%7Balertname%3D%22$alert%22,alertstate%3D%22firing%22%7D)")" = 1 ] || return
	done
}
quiet_alerts() { [ -z "$(query 'count(ALERTS)')" ]; }
# compare: seven numbers as Prometheus sees them are the target's
compare() {
	local pair
	publish
	for pair in written_bytes_total:written:4096 flash_written_bytes_total%7Bkind=%22data%22%7D:flash_data:4096 \
		flash_written_bytes_total%7Bkind=%22metadata%22%7D:flash_meta:4096 mapped_bytes:mapped:4096 \
		flushes_total:flushes:1 zone_erases_total:wear_total:1 checkpoints_total:checkpoints:1; do
		IFS=: read -r metric name factor <<< "$pair"
		soon sees "mtftl_$metric" $(($(field "$name" t) * factor))
		echo "$metric is $name: $(field "$name" t)"
	done
}

ifconfig lo 127.0.0.1
null nullb0 size=64
mtftl format --op 30% /dev/nullb0 > /dev/null
mtftl open /dev/nullb0 t lanes=1
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
mkdir text
publish
cat > prometheus.yml << EOF
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ mtftl-alerts.yml ]
scrape_configs:
  - job_name: node
    static_configs: [ targets: [ "127.0.0.1:9100" ] ]
EOF
export GOMAXPROCS=1 GOGC=off GOMEMLIMIT=400MiB
./prometheus-node-exporter --collector.disable-defaults --collector.textfile --collector.textfile.directory=text \
	--web.disable-exporter-metrics --web.listen-address=127.0.0.1:9100 2> exporter.log &
./prometheus --config.file=prometheus.yml --storage.tsdb.path=db --web.listen-address=127.0.0.1:9090 \
	--log.level=warn 2> prometheus.log &
prometheus=$!
soon sees mtftl_zones 16
quiet_alerts

compare
before=$(field written t)
numbered 0 900 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct conv=fsync status=none
test "$(field written t)" -gt "$before"
compare
waited=$(dmsetup message t 0 latency | awk '{ for (i = 2; i <= NF; i++) n += $i } END { print n + 0 }')
soon sees mtftl_buffer_wait_seconds_count "$waited"
soon sees 'mtftl_buffer_wait_seconds_bucket%7Ble=%22%2BInf%22%7D' "$waited"
quiet_alerts

touch -d "$(date -d @$(($(date +%s) - 700)) '+%Y-%m-%d %H:%M:%S')" text/mtftl.prom
soon fires MtftlNoMetrics
publish
soon quiet_alerts

for zone in 2 3; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
dmsetup message t 0 checkpoint
dmsetup message t 0 checkpoint
publish
soon fires MtftlZonesFail

# Of the first zone of data the end is valid still.
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1; exit }')
echo "+$((zone * 8192 + 7600))-$((zone * 8192 + 7639))" > /sys/kernel/config/nullb/nullb0/badblocks
dd if=/dev/mapper/t of=/dev/null bs=4k count=1024 iflag=direct conv=noerror status=none 2> /dev/null || true
test "$(field read_errors t)" -gt 0
publish
soon fires MtftlDriveFails
echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_offline
lost() { [ "$(field lost t)" -gt 0 ]; }
dmsetup message t 0 gc
until_true 10 lost
publish
soon fires MtftlLostBlocks

for zone in 0 1; do echo $((zone * 8192)) > /sys/kernel/config/nullb/nullb0/zone_readonly; done
turned() {
	dmsetup message t 0 checkpoint 2> /dev/null || true
	dmsetup status t | grep 'mtftl read-only'
}
until_true 10 turned
publish
soon fires MtftlReadOnly

# The drive does not serve its full zones, so GC gains nothing, and users wait.
dmsetup remove t
echo 0 > /sys/kernel/config/nullb/nullb0/power
rmdir /sys/kernel/config/nullb/nullb0
sed -i 's/_interval: 1s/_interval: 30s/g' prometheus.yml
kill -HUP $prometheus
echo 0 > /proc/sys/kernel/hung_task_timeout_secs
zones_apart
dd if=/dev/zero of=/dev/mapper/t bs=64k oflag=direct conv=fsync status=none 2> /dev/null || true
full=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 { print NR - 1 }')
for zone in $full; do dmsetup suspend --nolockfs --noflush "zone$zone"; done
dd if=/dev/zero of=/dev/mapper/t bs=64k oflag=direct status=none 2> /dev/null &
writer=$!
short() { dmsetup status t | grep 'gc short'; }
until_true 60 short
for _ in $(seq 14); do
	publish
	sleep 60
done
fails fires MtftlUsersWait
for _ in 1 2; do
	publish
	sleep 60
done
soon fires MtftlUsersWait
for zone in $full; do dmsetup resume "zone$zone"; done
wait $writer || true
publish
no_wait() { [ -z "$(query 'count(ALERTS%7Balertname%3D%22MtftlUsersWait%22%7D)')" ]; }
soon no_wait
cat prometheus.log exporter.log
