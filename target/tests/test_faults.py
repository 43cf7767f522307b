# SPDX-License-Identifier: GPL-2.0
"""The target on devices that break their word: zones that shrink, reads that lie, errors that pass."""

import pytest
from test_target import HELPERS, START

# copy FROM TO [ZONE BLOCKS]: each zone as far as it is written, of ZONE so many blocks less: the device as a cut leaves it
COPY = """
copy() {
	local start written condition number=0 blocks
	while read -r start written condition; do
		blocks=$((written / 8))
		[ $condition != 14 ] || blocks=1024
		[ "$number" != "$3" ] || blocks=$((blocks - $4))
		number=$((number + 1))
		[ $blocks -gt 0 ] || continue
		dd if=$1 of=$2 bs=4k skip=$((start / 8)) seek=$((start / 8)) count=$blocks iflag=direct oflag=direct \\
			status=none
	done < <(zones $1)
}
# numbered FIRST COUNT: each block says which one it is
numbered() { awk -v first=$1 -v count=$2 'BEGIN { for (i = first; i < first + count; i++) printf "%4096d", i }'; }
# judge DEVICE FIRST COUNT: blocks that read as errors; none may read as anything but what numbered() put there
judge() {
	dd if=$1 bs=4k skip=$2 count=$3 iflag=direct conv=noerror,sync status=none 2> /dev/null > found || true
	numbered $2 $3 | cmp -l - found | awk '$3 != 0 { bad = 1 } END { print NR / 4096; exit bad }'
}
"""


@pytest.mark.parametrize("stopped", [True, False], ids=["clean", "crash"])
def test_a_zone_that_is_shorter_than_it_was(lab_run, stopped):
    """What it held beyond its write pointer reads as errors, also when the zone is written again, and after a crash."""
    stop = "dmsetup remove t" if stopped else ""
    result = lab_run(START + COPY + f"""
for i in 0 1 2; do null nullb$i size=64; done
mtftl format --op 30% /dev/nullb0 > /dev/null
dmsetup create t --table "$(table /dev/nullb0 lanes 1)"
numbered 0 2048 | dd of=/dev/mapper/t bs=64k iflag=fullblock oflag=direct status=none
dmsetup message t 0 checkpoint
sync /dev/mapper/t
{stop}
zone=$(zones /dev/nullb0 | awk '$3 == 14 && NR > 4 {{ print NR - 1; exit }}')
copy /dev/nullb0 /dev/nullb1 $zone 150
[ ! -e /dev/mapper/t ] || dmsetup remove t
""" + """
dmsetup create t --table "$(table /dev/nullb1 lanes 1)"
lost=$(judge /dev/mapper/t 0 2048)
echo "lost $lost"
test $lost -gt 100
test "$(field lost t)" = $lost
dmesg | grep "$lost blocks are lost"
numbered 4096 3072 | dd of=/dev/mapper/t bs=64k seek=256 iflag=fullblock oflag=direct status=none
sync /dev/mapper/t
test $(judge /dev/mapper/t 0 2048) = $lost
copy /dev/nullb1 /dev/nullb2
dmsetup remove t
dmsetup create t --table "$(table /dev/nullb2 lanes 1)"
test $(judge /dev/mapper/t 0 2048) = $lost
test $(judge /dev/mapper/t 4096 3072) = 0
dmsetup remove t
mtftl check /dev/nullb2
""", profile="none", push=[HELPERS])
    assert result.ok, result.output
