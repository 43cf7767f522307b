/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of mtftl(8) share: exit codes, messages, commands. */
#ifndef MTFTL_TOOL_H
#define MTFTL_TOOL_H

#include <assert.h>

#include "lib/pure.h"

/* As fsck(8) has them, and blkid(8) the one of nothing. */
enum mtftl_exit {
	EXIT_OK		= 0,
	EXIT_NOTHING	= 2,	/* probe: no device of ours */
	EXIT_DAMAGE	= 4,	/* check: errors found */
	EXIT_FAILED	= 8,	/* could not be done */
	EXIT_USAGE	= 16,
};

/* Say what is wrong and what was expected, on one line, then exit. */
void fail(enum mtftl_exit code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void *xalloc(size_t count, size_t size);
/* Aligned for O_DIRECT, of undefined content. */
void *xalloc_blocks(size_t blocks);

/*
 * Fail if less than @needed bytes are available. It is better to fail now than after hours, or to
 * be killed by the kernel.
 */
void need_memory(const char *path, u64 needed);

/* A bar on stderr where that is a terminal; nothing elsewhere. */
void progress(const char *what, u64 done, u64 total);
/* Before anything else is printed. */
void progress_clear(void);

/* The question of cryptsetup: whether the answer is YES. */
bool is_confirmed(void);

/* Commands; argv[0] is the command's name. */
int cmd_format(int argc, char **argv);
int cmd_open(int argc, char **argv);
int cmd_close(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_tab(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_rename(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_header_backup(int argc, char **argv);
int cmd_header_restore(int argc, char **argv);
int cmd_resize(int argc, char **argv);
int cmd_discard(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_zones(int argc, char **argv);

#endif
