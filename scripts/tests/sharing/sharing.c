// SPDX-License-Identifier: GPL-2.0
/*
 * Two CPUs write to two fields of one structure, which has them on one line of
 * memory: for the test that `lab c2c` tells. All happens when it is loaded.
 */
#include <linux/cache.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>

#define TURNS 20000

struct sharing_pair {
	u64 before;
	u64 left;
	u64 right;
};

static void sharing_work(void *info)
{
	struct sharing_pair *pair = info;
	int i;

	for (i = 0; i < TURNS; i++) {
		if (smp_processor_id() == 0)
			WRITE_ONCE(pair->left, pair->left + 1);
		else
			WRITE_ONCE(pair->right, pair->right + 1);
	}
}

static int __init sharing_init(void)
{
	struct sharing_pair *pair = kzalloc(max(sizeof(*pair), L1_CACHE_BYTES), GFP_KERNEL);

	if (!pair)
		return -ENOMEM;
	on_each_cpu(sharing_work, pair, 1);
	kfree(pair);
	return 0;
}
module_init(sharing_init);

static void __exit sharing_exit(void)
{
}
module_exit(sharing_exit);

MODULE_DESCRIPTION("shares a line of memory between two CPUs");
MODULE_LICENSE("GPL");
