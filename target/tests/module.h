/* SPDX-License-Identifier: GPL-2.0 */
/* What a test may let module.c do. One thread. */
#ifndef MTFTL_TESTS_MODULE_H
#define MTFTL_TESTS_MODULE_H

struct mtftl;

/* Happens while a checkpoint flushes; NULL: nothing does. */
extern void (*module_flushes)(struct mtftl *ftl);

#endif
