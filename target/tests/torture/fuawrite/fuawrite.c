// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/fuawrite, see fuawrite.h: a test helper, never part of a product. Every
 * call stands alone; there is no state and no lock.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "fuawrite.h"

static int attach_pages(struct bio *bio, const void __user *data, u32 length)
{
	while (length) {
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		__bio_add_page(bio, page, PAGE_SIZE, 0);
		if (copy_from_user(page_address(page), data, PAGE_SIZE))
			return -EFAULT;
		data += PAGE_SIZE;
		length -= PAGE_SIZE;
	}
	return 0;
}

static int write_fua(struct block_device *bdev, const struct fuawrite *arg)
{
	struct bio *bio = bio_alloc(bdev, arg->length / PAGE_SIZE,
				    REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | REQ_FUA, GFP_KERNEL);
	int err;

	bio->bi_iter.bi_sector = arg->offset >> SECTOR_SHIFT;
	err = attach_pages(bio, u64_to_user_ptr(arg->data), arg->length);
	if (!err)
		err = submit_bio_wait(bio);
	bio_free_pages(bio);
	bio_put(bio);
	return err;
}

static long fuawrite_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	struct fuawrite arg;
	struct file *target;
	long err = -EINVAL;

	if (cmd != FUAWRITE)
		return -ENOTTY;
	if (copy_from_user(&arg, (void __user *)uarg, sizeof(arg)))
		return -EFAULT;
	if (!arg.length || arg.length > FUAWRITE_MAX || (arg.length | arg.offset) % PAGE_SIZE)
		return -EINVAL;
	target = fget(arg.fd);
	if (!target)
		return -EBADF;
	if (S_ISBLK(file_inode(target)->i_mode) && target->f_mode & FMODE_WRITE)
		err = write_fua(I_BDEV(target->f_mapping->host), &arg);
	fput(target);
	return err;
}

static const struct file_operations fuawrite_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = fuawrite_ioctl,
};

static struct miscdevice fuawrite_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "fuawrite",
	.fops = &fuawrite_fops,
};

module_misc_device(fuawrite_device);
MODULE_DESCRIPTION("Writes with FUA and nothing else, for crash tests");
MODULE_LICENSE("GPL");
