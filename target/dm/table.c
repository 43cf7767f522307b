// SPDX-License-Identifier: GPL-2.0
/*
 * The table line, and what a device allows of it: see target.h. Writes config, for all others to
 * read.
 */
#include <linux/sched.h>

#include "device/meta.h"
#include "device/options.h"
#include "device/rw.h"
#include "device/thread.h"
#include "dm/target.h"
#include "map/ring.h"
#include "zone/super.h"

/* Table line */

static int parse_option(struct mtftl_target *target, const char *name, const char *value)
{
	const char *old_name = name, *old_value = value;
	struct mtftl *ftl = &target->ftl;
	char expected[MTFTL_OPTION_TEXT];
	int r;

	if (mtftl_option_renew(&name, &value))
		mtftl_warn(ftl, "option %s %s is an old form, which the next release will refuse, expected %s %s",
			   old_name, old_value, name, value);
	r = mtftl_option_set(&ftl->config, name, value, expected);
	if (r == -ENOENT) {
		mtftl_err(ftl, "option %s is not known, expected %s", name, expected);
		target->ti->error = "Unknown option";
	} else if (r) {
		mtftl_err(ftl, "%s is %s, expected %s", name, value, expected);
		target->ti->error = "Option has a wrong value";
	}
	return r ? -EINVAL : 0;
}

int mtftl_table_parse(struct mtftl_target *target, unsigned int argc, char **argv)
{
	struct mtftl_config *config = &target->ftl.config;
	struct dm_target *ti = target->ti;
	unsigned int nr, i;
	int r;

	*config = (struct mtftl_config){};
	mtftl_options_init(config);
	if (!argc)
		return 0;
	if (kstrtouint(argv[0], 10, &nr) || nr != argc - 1 || nr % 2) {
		ti->error = "Expected <device> [<number of words> {<option> <value>}]";
		return -EINVAL;
	}
	for (i = 1; i < argc; i += 2) {
		r = parse_option(target, argv[i], argv[i + 1]);
		if (r)
			return r;
	}
	return 0;
}

/* What the device allows */

/* The zones that the format is in, or -EINVAL: there are none. */
static int find_zones(struct mtftl_target *target)
{
	int r = mtftl_device_find_zones(&target->ftl);

	if (r == -EINVAL)
		target->ti->error = "Device has no sequential zones";
	else if (r)
		target->ti->error = "Cannot report zones";
	return r;
}

int mtftl_table_check_device(struct mtftl_target *target)
{
	struct mtftl_config *config = &target->ftl.config;
	struct block_device *bdev = mtftl_bdev(&target->ftl);
	struct request_queue *q = bdev_get_queue(bdev);
	struct dm_target *ti = target->ti;
	u32 sectors;
	int r;

	if (!bdev_is_zoned(bdev)) {
		ti->error = "Device is not zoned, expected a host-managed zoned device";
		return -EINVAL;
	}
#ifdef MTFTL_HAS_ZONED_MODEL
	if (bdev_zoned_model(bdev) != BLK_ZONED_HM) {
		ti->error = "Device is host-aware, expected a host-managed zoned device";
		return -EINVAL;
	}
#endif
	if (bdev_logical_block_size(bdev) > MTFTL_BLOCK_SIZE) {
		ti->error = "Device has blocks of more than 4096 bytes";
		return -EINVAL;
	}
	if (bdev_zone_sectors(bdev) % MTFTL_BLOCK_SECTORS ||
	    !is_power_of_2(bdev_zone_sectors(bdev))) {
		ti->error = "Zone size is not a power of two of 4096 bytes";
		return -EINVAL;
	}
	r = find_zones(target);
	if (r)
		return r;
	if (bdev_logical_block_size(bdev) == MTFTL_BLOCK_SIZE)
		config->meta_size = mtftl_meta_size(bdev);
	if (!bdev_max_zone_append_sectors(bdev) ||
	    (!config->meta_size && mtftl_meta_is_there(bdev)))
		config->append = false;
	sectors = queue_max_sectors(q);
	if (config->append)
		sectors = min(sectors, bdev_max_zone_append_sectors(bdev));
	/* One segment a block at worst, and one for the header: units are never split. */
	config->unit_max = min3(sectors / MTFTL_BLOCK_SECTORS, (u32)queue_max_segments(q),
				(u32)MTFTL_UNIT_MAX_ENTRIES + 1);
	if (config->meta_size)
		config->unit_max = min_t(u32, config->unit_max, PAGE_SIZE / config->meta_size);
	if (config->unit_max < 2) {
		ti->error = "Device takes less than 8192 bytes in one write";
		return -EINVAL;
	}
	config->unit_max--;
	config->write_unit = min(config->write_unit, config->unit_max);
	return 0;
}

/* There may have been a record that cannot be read any more. */
static bool log_is_in_part(struct mtftl *ftl)
{
	return mtftl_zone_is_offline(ftl, 0) || mtftl_zone_is_offline(ftl, 1);
}

int mtftl_table_check_super(struct mtftl_target *target)
{
	struct mtftl *ftl = &target->ftl;
	const struct mtftl_sb_info *info = mtftl_super_info(ftl);
	struct dm_target *ti = target->ti;
	int r;

	r = mtftl_super_load(ftl);
	switch (r) {
	case 0:
		break;
	case -ENODATA:
		ti->error = "No superblock found, expected a device formatted by mtftl format";
		if (log_is_in_part(ftl))
			ti->error = "No superblock found, and one of its zones is offline";
		return -EINVAL;
	case -EPROTO:
		ti->error = "Superblock is of a newer version or has unknown features";
		return -EINVAL;
	case -EINVAL:
		ti->error = "Superblock contradicts itself";
		return r;
	default:
		ti->error = "Cannot read the superblock";
		return r;
	}
	if (info->zone_blocks != 1u << ftl->config.zone_shift ||
	    info->nr_zones != ftl->config.zones_there ||
	    info->zone_capacity != ftl->config.capacity) {
		mtftl_err(ftl, "has %u zones of %u blocks that hold %u, expected %u (nr_zones) of %u (zone_blocks) that hold %u (zone_capacity)",
			  ftl->config.zones_there, 1u << ftl->config.zone_shift,
			  ftl->config.capacity, info->nr_zones, info->zone_blocks,
			  info->zone_capacity);
		ti->error = "Device has other zones than it was formatted with";
		return -EINVAL;
	}
	if (ti->len != info->logical_blocks * MTFTL_BLOCK_SECTORS) {
		mtftl_err(ftl, "length is %llu sectors, expected %llu (logical_blocks)",
			  (u64)ti->len, info->logical_blocks * MTFTL_BLOCK_SECTORS);
		ti->error = "Table has another length than the device was formatted with";
		return -EINVAL;
	}
	if (info->oob && ftl->config.meta_size < sizeof(struct mtftl_oob)) {
		mtftl_err(ftl, "has %u bytes of metadata a block, expected %zu: headers are there, says incompat",
			  ftl->config.meta_size, sizeof(struct mtftl_oob));
		ti->error = "Device or kernel lacks the metadata that it was formatted with";
		return -EINVAL;
	}
	/* All that was prepared since has the length of headers that the constructor read. */
	if (ftl->config.nr_zones &&
	    ftl->config.header_blocks != mtftl_unit_head(info->oob, MTFTL_UNIT_DATA)) {
		mtftl_err(ftl, "headers take %u blocks of a unit, expected %u: formatted anew since the table was loaded",
			  mtftl_unit_head(info->oob, MTFTL_UNIT_DATA), ftl->config.header_blocks);
		ti->error = "Device was formatted anew since the table was loaded";
		return -EINVAL;
	}
	/* Another program may have formatted it since the constructor. */
	mtftl_config_set_format(&ftl->config, info);
	return 0;
}

int mtftl_table_fit(struct mtftl_target *target)
{
	struct mtftl *ftl = &target->ftl;
	struct mtftl_config *config = &ftl->config;
	struct block_device *bdev = mtftl_bdev(ftl);
	u32 entries = config->buffer_entries;
	int r;

	config->nr_zones = mtftl_super_info(ftl)->nr_zones;
	config->logical_blocks = mtftl_super_info(ftl)->logical_blocks;
	config->nr_lanes = config->nr_lanes ? config->nr_lanes : mtftl_thread_nr_cpus();
	r = mtftl_config_fit(config, min_not_zero(bdev_max_open_zones(bdev),
						  bdev_max_active_zones(bdev)));
	if (config->buffer_entries != entries)
		mtftl_warn(ftl, "buffer_entries is %u: more would not fit into %u spare zones",
			   config->buffer_entries, mtftl_config_spare_zones(config));
	if (r == -ERANGE)
		target->ti->error = "buffer_entries is more than slots can be numbered";
	else if (r)
		target->ti->error = "Device allows too few open zones, expected 4 at least";
	return r ? -EINVAL : 0;
}

/* All options, behind what is in @result; returns how much is there then. */
static unsigned int print_options(const struct mtftl_config *config, char before, char between,
				  char *result, unsigned int maxlen, unsigned int sz)
{
	char text[MTFTL_OPTION_TEXT];
	u32 i;

	for (i = 0; i < mtftl_options_nr(); i++)
		DMEMIT("%c%s%c%s", before, mtftl_option_name(i), between,
		       mtftl_option_value(config, i, text));
	return sz;
}

void mtftl_table_print(struct mtftl *ftl, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT("%s %u", mtftl_device_name(ftl), 2 * mtftl_options_nr());
	print_options(&ftl->config, ' ', ' ', result, maxlen, sz);
}

void mtftl_table_measure(struct mtftl_target *target, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	DMEMIT_TARGET_NAME_VERSION(target->ti->type);
	DMEMIT(",device_name=%s", mtftl_device_name(&target->ftl));
	sz = print_options(&target->ftl.config, ',', '=', result, maxlen, sz);
	DMEMIT(";");
}
