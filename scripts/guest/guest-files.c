// SPDX-License-Identifier: GPL-2.0
/*
 * guest-files VERB FOLDER ...: makes files of a mounted file system in pieces, as the programs of
 * the FAST '24 artifact on fragmentation do, and reads them. Sizes are in KiB. Each measurement is
 * a line: NAME BYTES NANOSECONDS.
 *
 *	align FOLDER PAGE
 *		writes blocks until the drive has filled a page of so many KiB: the next piece begins one
 *	whole FOLDER SIZE
 *		writes a file in one go
 *	append FOLDER SIZE PIECE <GAPS
 *		appends pieces to a file, each with its fdatasync. Behind each piece, another file
 *		is written, as long as the next number of GAPS says
 *	overwrite FOLDER SIZE PIECE <GAPS
 *		the same with a file that is there
 *	read FOLDER FILE STEP NAME
 *		reads one file
 *	create FOLDER FILES SIZE
 *		the server's files, each written whole; several threads
 *	grow FOLDER FILES APPEND ROUNDS COMMIT
 *		ten users append to all of them in turn, ROUNDS times. The journal commits after each
 *		COMMIT rounds
 *	copy FOLDER FILES SIZE
 *		writes them whole, one after the other
 *	serve FOLDER FILES MILLISECONDS NAME
 *		ten users read whole files in turn
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"

#define KIB 1024ul
#define STEP (1024 * KIB)
#define BLOCK 4096ul
#define PROGRAMMED_US 1000		/* longer than a program takes */
#define USERS 10
#define A_FOLDER 20			/* files in one */
#define PATH_MAX_OURS 256

static uint8_t *data;
static const char *top;
static unsigned long files, size, turns, rounds;
static uint64_t until, served;
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long turn;
static uint8_t busy[1 << 16];

static void *aligned(unsigned long bytes)
{
	void *memory;

	if (posix_memalign(&memory, 4096, bytes))
		die("memory");
	return memset(memory, 0x61, bytes);
}

static void put(int file, unsigned long bytes)
{
	while (bytes) {
		unsigned long part = bytes < STEP ? bytes : STEP;

		if (write(file, data, part) != (ssize_t)part)
			die("write");
		bytes -= part;
	}
}

/* Reads a file from its begin to its end past the page cache. */
static uint64_t read_whole(const char *path, uint8_t *into, unsigned long step)
{
	int file = open(path, O_RDONLY | O_DIRECT);
	uint64_t sum = 0;
	ssize_t got;

	if (file < 0)
		die(path);
	while ((got = read(file, into, step)) > 0)
		sum += got;
	if (got < 0)
		die(path);
	close(file);
	return sum;
}

static void measure(const char *path, unsigned long step, const char *name)
{
	uint8_t *into = aligned(step);
	uint64_t sum, start;

	learn_extents(path);
	start = now();
	sum = read_whole(path, into, step);
	printf("%s %lu %lu\n", name, sum, now() - start);
	free(into);
}

/* What others write behind a piece: a file of its own. */
static void write_gap(unsigned int number)
{
	char path[PATH_MAX_OURS];
	unsigned long gap;
	int file;

	if (scanf("%lu", &gap) != 1) {
		fprintf(stderr, "guest-files: too few gaps\n");
		exit(1);
	}
	snprintf(path, sizeof(path), "%s/D%u.data", top, number);
	file = open(path, O_CREAT | O_RDWR | O_APPEND, 0666);
	if (file < 0)
		die(path);
	/* in one call, as long as it is */
	if (gap * KIB > STEP)
		put(file, gap * KIB);
	else if (write(file, data, gap * KIB) != (ssize_t)(gap * KIB))
		die(path);
	if (fdatasync(file))
		die(path);
	close(file);
}

static int open_target(int flags)
{
	char path[PATH_MAX_OURS];
	int file;

	snprintf(path, sizeof(path), "%s/T0.data", top);
	file = open(path, O_RDWR | flags, 0666);
	if (file < 0)
		die(path);
	return file;
}

static void make_pieces(unsigned long bytes, unsigned long piece, int flags)
{
	unsigned int number = 0;
	int file = open_target(flags);
	unsigned long at;

	for (at = 0; at < bytes; at += piece) {
		if (pwrite(file, data, piece, at) != (ssize_t)piece || fdatasync(file))
			die("write");
		write_gap(number++);
	}
	if (fsync(file))
		die("fsync");
	close(file);
}

static void pad(int file, unsigned long *at, unsigned long bytes)
{
	if (pwrite(file, data, bytes, *at) != (ssize_t)bytes)
		die("pad");
	*at += bytes;
}

/* The time of the fastest of some reads: what disturbs one only makes it slower. */
static uint64_t shortest(int file, unsigned long at, uint8_t *into, unsigned long bytes)
{
	uint64_t least = UINT64_MAX;
	int i;

	for (i = 0; i < 4; i++) {
		uint64_t start = now(), took;

		if (pread(file, into, bytes, at) != (ssize_t)bytes)
			die("read");
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

/*
 * The drive packs blocks into pages as they come. A piece as long as a page is read in the longest
 * time if it is one page: of two halves, two dies read one each, or one half is in the buffer still.
 */
static void fill_page(unsigned long page)
{
	uint8_t *into = aligned(page);
	uint64_t longest = 0;
	unsigned long i, best = 0, at = 0;
	char path[PATH_MAX_OURS];
	int file;

	snprintf(path, sizeof(path), "%s/pad", top);
	file = open(path, O_CREAT | O_RDWR | O_DIRECT, 0666);
	if (file < 0)
		die(path);
	for (i = 0; i < page / BLOCK; i++) {
		uint64_t took;

		pad(file, &at, page);
		usleep(PROGRAMMED_US);
		took = shortest(file, at - page, into, page);
		if (took > longest) {
			longest = took;
			best = i;
		}
		pad(file, &at, BLOCK);
	}
	for (i = 0; i < best; i++)
		pad(file, &at, BLOCK);
	close(file);
}

static void make_whole(unsigned long bytes)
{
	int file = open_target(O_CREAT | O_TRUNC);

	put(file, bytes);
	if (fsync(file))
		die("fsync");
	close(file);
}

static void name_of(char *path, unsigned long number)
{
	snprintf(path, PATH_MAX_OURS, "%s/%lu/%lu", top, number / A_FOLDER, number);
}

static void make_folders(void)
{
	char path[PATH_MAX_OURS];
	unsigned long i;

	for (i = 0; i * A_FOLDER < files; i++) {
		snprintf(path, sizeof(path), "%s/%lu", top, i);
		if (mkdir(path, 0777))
			die(path);
	}
}

/* The next file that no other user has, in rotation; turns counts the files of all rounds. */
static long take_turn(void)
{
	long mine = -1;

	pthread_mutex_lock(&turn_lock);
	if (turn < turns) {
		while (busy[turn % files])
			turn++;
		mine = turn++ % files;
		busy[mine] = 1;
	}
	pthread_mutex_unlock(&turn_lock);
	return mine;
}

static void end_turn(long mine)
{
	pthread_mutex_lock(&turn_lock);
	busy[mine] = 0;
	pthread_mutex_unlock(&turn_lock);
}

static void learn_all_extents(void)
{
	char path[PATH_MAX_OURS];
	unsigned long i;

	for (i = 0; i < files; i++) {
		name_of(path, i);
		learn_extents(path);
	}
}

static void *create_some(void *unused)
{
	char path[PATH_MAX_OURS];
	long mine;

	while ((mine = take_turn()) >= 0) {
		int file;

		name_of(path, mine);
		file = open(path, O_CREAT | O_RDWR, 0644);
		if (file < 0)
			die(path);
		put(file, size);
		close(file);
		end_turn(mine);
	}
	return unused;
}

static void *append_some(void *unused)
{
	char path[PATH_MAX_OURS];
	long mine;

	while ((mine = take_turn()) >= 0) {
		int file;

		name_of(path, mine);
		file = open(path, O_RDWR);
		if (file < 0 || lseek(file, 0, SEEK_END) < 0)
			die(path);
		put(file, size);
		close(file);
		end_turn(mine);
	}
	return unused;
}

static void *serve_some(void *unused)
{
	uint8_t *into = aligned(STEP);
	char path[PATH_MAX_OURS];
	uint64_t sum = 0;
	long mine;

	while (now() < until && (mine = take_turn()) >= 0) {
		name_of(path, mine);
		sum += read_whole(path, into, STEP);
		end_turn(mine);
	}
	__atomic_add_fetch(&served, sum, __ATOMIC_RELAXED);
	return unused;
}

static void all_users(void *(*work)(void *))
{
	pthread_t users[USERS];
	unsigned int i;

	for (i = 0; i < USERS; i++)
		if (pthread_create(&users[i], NULL, work, NULL))
			die("thread");
	for (i = 0; i < USERS; i++)
		pthread_join(users[i], NULL);
}

/* The running transaction of the journal ends, and with it the data of its files is written. */
static void end_transaction(void)
{
	char path[PATH_MAX_OURS];
	int file;

	snprintf(path, sizeof(path), "%s/commit", top);
	file = open(path, O_CREAT | O_RDWR | O_APPEND, 0666);
	if (file < 0 || write(file, data, 4096) != 4096 || fsync(file))
		die(path);
	close(file);
}

static void copy_all(const char *to)
{
	unsigned long i;

	make_folders();
	for (i = 0; i < files; i++) {
		char path[PATH_MAX_OURS];
		int file;

		name_of(path, i);
		file = open(path, O_CREAT | O_RDWR, 0644);
		if (file < 0)
			die(path);
		put(file, strtoul(to, NULL, 10) * KIB);
		close(file);
	}
}

int main(int argc, char **argv)
{
	const char *verb = argc > 3 ? argv[1] : "";
	uint64_t start;

	top = argv[2];
	data = aligned(STEP);
	files = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	if (!strcmp(verb, "align") && argc == 4) {
		fill_page(files * KIB);
	} else if (!strcmp(verb, "whole") && argc == 4) {
		make_whole(files * KIB);
	} else if ((!strcmp(verb, "append") || !strcmp(verb, "overwrite")) && argc == 5) {
		make_pieces(files * KIB, atol(argv[4]) * KIB, *verb == 'a' ? O_CREAT | O_TRUNC : 0);
	} else if (!strcmp(verb, "read") && argc == 6) {
		char path[PATH_MAX_OURS];

		snprintf(path, sizeof(path), "%s/%s", top, argv[3]);
		measure(path, atol(argv[4]) * KIB, argv[5]);
	} else if (!strcmp(verb, "create") && argc == 5) {
		size = strtoul(argv[4], NULL, 10) * KIB;
		turns = files;
		make_folders();
		all_users(create_some);
	} else if (!strcmp(verb, "grow") && argc == 7) {
		size = strtoul(argv[4], NULL, 10) * KIB;
		rounds = strtoul(argv[5], NULL, 10);
		for (unsigned long done = 0; done < rounds;) {
			unsigned long more = strtoul(argv[6], NULL, 10);

			more = more < rounds - done ? more : rounds - done;
			turn = 0;
			turns = more * files;
			all_users(append_some);
			done += more;
			end_transaction();
		}
	} else if (!strcmp(verb, "copy") && argc == 5) {
		copy_all(argv[4]);
	} else if (!strcmp(verb, "serve") && argc == 6) {
		learn_all_extents();
		turns = ~0ul;
		start = now();
		until = start + strtoull(argv[4], NULL, 10) * 1000000;
		all_users(serve_some);
		printf("%s %lu %lu\n", argv[5], served, now() - start);
	} else {
		fprintf(stderr, "guest-files: no such verb, or not what it takes\n");
		return 2;
	}
	return 0;
}
