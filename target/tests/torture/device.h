/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block device whose power can be cut, as the torture run sees it. Three of
 * them: memdevice.c (a model in memory that can be told to misbehave, which
 * proves the oracle itself), dmdevice.c (dm-mtftl over the emulated flash), and
 * stripedevice.c (dm-stripe over several of these).
 *
 * read, write, flush and clear may be called by any number of threads; the rest
 * by one thread at a time. All return 0 or a negative errno.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum write_flags {
	WRITE_FUA	= 1,
	WRITE_NOWAIT	= 2,
};

enum clear_kind {
	CLEAR_DISCARD,
	CLEAR_ZEROES,
};

enum cut_kind {
	CUT_NS,			/* after so many nanoseconds */
	CUT_PROGRAMS,		/* in so many-th program of a flash page from now */
	CUT_RESETS,		/* when so many-th reset of a zone has ended */
};

/* What a round may vary; each device takes what it knows. */
struct tuning {
	unsigned int lanes;
	unsigned int buffer_entries;
	unsigned int write_unit;
	bool cost_benefit;
	enum placement {
		PLACEMENT_NONE, PLACEMENT_HOT_COLD, PLACEMENT_BY_AGE, PLACEMENT_BY_LIFE, NR_PLACEMENTS,
	} placement;
	bool append;		/* the device places units, not the target */
};

/* What an administrator does to a busy device. */
enum disturbance {
	DISTURB_CHECKPOINT,
	DISTURB_GC,
	DISTURB_SUSPEND,
	DISTURB_PAUSE,		/* a suspend without flush */
	DISTURB_RELOAD,
	NR_DISTURBANCES,
};

/* What flash does when it wears out; at a place that @where chooses. */
enum fault {
	FAULT_NONE,
	FAULT_WRITE,		/* the next write to some zone fails, once */
	FAULT_READ_ONLY,	/* a zone can only be read from now on */
	NR_FAULTS,
};

struct device {
	uint64_t nr_blocks;
	const char *flash;	/* path of the raw device, NULL: none */
	const struct device_ops *ops;
};

struct device_ops {
	int (*read)(struct device *dev, uint64_t lba, uint32_t nr, void *data);
	int (*write)(struct device *dev, uint64_t lba, uint32_t nr, const void *data,
		     unsigned int flags);
	int (*flush)(struct device *dev);
	int (*clear)(struct device *dev, uint64_t lba, uint32_t nr, enum clear_kind kind);

	int (*mount)(struct device *dev, const struct tuning *tuning);
	int (*unmount)(struct device *dev);
	int (*disturb)(struct device *dev, enum disturbance what, const struct tuning *tuning);
	/* Of an unmounted device: all blocks read as zeroes; nr_blocks may change. */
	int (*format)(struct device *dev);
	/* Look at the media of an unmounted device with a second program. */
	int (*check)(struct device *dev);
	/* Let it make a damaged checkpoint anew. */
	int (*rebuild)(struct device *dev);

	int (*fault)(struct device *dev, enum fault fault, uint64_t where);
	/* One die takes so many percent of its time, until the power goes. */
	int (*slow_die)(struct device *dev, uint64_t where, unsigned int percent);
	/* Records that the superblock log takes before it goes on in its other zone. */
	unsigned int (*log_room)(struct device *dev);
	/* So many reads and writes in a million fail from now on. */
	int (*fault_rates)(struct device *dev, unsigned int reads, unsigned int writes);
	int (*arm)(struct device *dev, enum cut_kind kind, uint64_t value);
	bool (*dead)(struct device *dev);
	/* Cut now unless that has happened, then power on; nothing is armed after. */
	int (*power_cycle)(struct device *dev);
	/* Print what the device tells about itself: something waits for it for ever. */
	void (*describe)(struct device *dev);
	/* Forget an armed cut; false if it came before. */
	bool (*disarm)(struct device *dev);
};

/* Each parses what follows "mem:", "dm:" or "stripe:"; NULL after a message. */
struct device *memdevice_open(const char *spec, uint64_t seed);
struct device *dmdevice_open(const char *spec);
struct device *stripedevice_open(const char *spec);

#endif
