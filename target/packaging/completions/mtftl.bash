# SPDX-License-Identifier: GPL-2.0
# Completion of mtftl(8) for bash.

_mtftl_drives() # host-managed block devices
{
	local zoned

	for zoned in /sys/block/*/queue/zoned; do
		[[ -r $zoned && $(<"$zoned") == host-managed ]] || continue
		zoned=${zoned#/sys/block/}
		echo "/dev/${zoned%/queue/zoned}"
	done
}

_mtftl_open() # names of open devices
{
	local uuid name

	for uuid in /sys/block/dm-*/dm/uuid; do
		[[ -r $uuid && $(<"$uuid") == mtftl-* ]] || continue
		name=$(<"${uuid%uuid}name")
		echo "$name"
	done
}

_mtftl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} words

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "check close discard dump format header-backup header-restore help list metrics open probe rename resize status tab top watch zones" -- "$cur")
		return
	fi
	case ${COMP_WORDS[1]} in
	check)	words="--rebuild --force --ignore-read-errors $(_mtftl_drives)" ;;
	close)	words="--deferred --force $(_mtftl_open)" ;;
	discard) words="--force $(_mtftl_open)" ;;
	header-backup)	words=$(_mtftl_drives) ;;
	header-restore)	words="--force $(_mtftl_drives)" ;;
	resize)	words=$(_mtftl_drives) ;;
	dump)	words="--units $(_mtftl_drives)" ;;
	format)	words="--op --headers --force --uuid $(_mtftl_drives)" ;;
	metrics) words="--output $(_mtftl_open)" ;;
	open)	words="--readonly lanes= buffer_entries= write_unit= gc_policy= placement= write_hints= append= low_water=
		       $(_mtftl_drives)" ;;
	probe)	words=$(_mtftl_drives) ;;
	rename)	words=$(_mtftl_open) ;;
	status)	words="--counters --json $(_mtftl_open)" ;;
	tab)	words="--with" ;;
	top)	words="--interval --count $(_mtftl_open)" ;;
	watch)	words="--journal --udev $(_mtftl_open)" ;;
	zones)	words="--json --svg $(_mtftl_open)" ;;
	esac
	[[ ${COMP_WORDS[COMP_CWORD - 1]} != --headers ]] || words="auto blocks metadata"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	[[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

complete -F _mtftl mtftl
