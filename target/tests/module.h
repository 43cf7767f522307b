/* SPDX-License-Identifier: GPL-2.0 */
/* What a test may let module.c do. One thread. */
#ifndef MTFTL_TESTS_MODULE_H
#define MTFTL_TESTS_MODULE_H

#include "device/ftl.h"

/* Happens while a checkpoint flushes; NULL: nothing does. */
extern void (*module_flushes)(struct mtftl *ftl);
/* The error that its flush ends with; 0: none. */
extern int module_cannot_flush;
/* To be called as if a stream had opened a zone. */
extern void (*module_opened)(struct mtftl *ftl);

/* Flushes of the device so far, and the one that fails; 0: none does. */
extern unsigned int module_device_flushes, module_flush_fails;
/* It serves if a zone for checkpoints fails, then those behind it; 0: there are none. */
extern u32 module_spare;
/* How often users were told to look. */
extern unsigned int module_news;

#endif
