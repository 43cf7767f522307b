// SPDX-License-Identifier: GPL-2.0
/*
 * What a synced transaction takes.
 *
 *	guest-commits fill FOLDER JOURNAL		a database of sqlite's with that journal: WAL, DELETE
 *	guest-commits sqlite FOLDER MILLISECONDS	overwrite one of its rows in each transaction
 *	guest-commits files FOLDER MILLISECONDS THREADS	as mail is delivered: write a file, sync it, rename it,
 *							sync its folder; each thread has one, and keeps KEEP
 *							files there
 *
 * Prints the nanoseconds of each transaction that ended within the time, one a line.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "guest.h"

#define ROWS 20000u
#define ROW 200
#define FILE_BYTES 8192
#define KEEP 256
#define MOST_THREADS 32
#define MOST 1000000u			/* transactions of a thread */

struct worker {
	pthread_t thread;
	const char *folder;
	unsigned int number;
	uint64_t end;
	uint32_t *took;			/* ns of each transaction */
	unsigned int count;
};

static unsigned int draw(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void run(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
		fprintf(stderr, "guest-commits: %s\n", message);
		exit(1);
	}
}

static void step(sqlite3 *db, sqlite3_stmt *statement)
{
	if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK) {
		fprintf(stderr, "guest-commits: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
		fprintf(stderr, "guest-commits: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	return statement;
}

static void note(struct worker *worker, uint64_t since)
{
	uint64_t at = now();

	if (at <= worker->end && worker->count < MOST)
		worker->took[worker->count++] = at - since;
}

static sqlite3 *open_db(const char *folder)
{
	char path[256];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/commits.db", folder);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(path);
	run(db, "PRAGMA synchronous = FULL;");
	return db;
}

static void fill(const char *folder, const char *journal)
{
	char text[ROW + 1] = { 0 }, mode[64];
	sqlite3 *db = open_db(folder);
	sqlite3_stmt *insert;
	unsigned int i;

	snprintf(mode, sizeof(mode), "PRAGMA journal_mode = %s;", journal);
	run(db, mode);
	run(db, "CREATE TABLE rows(id INTEGER PRIMARY KEY, text TEXT); BEGIN;");
	insert = prepare(db, "INSERT INTO rows VALUES(?, ?)");
	memset(text, 'a', ROW);
	for (i = 0; i < ROWS; i++) {
		sqlite3_bind_int(insert, 1, i);
		sqlite3_bind_text(insert, 2, text, ROW, SQLITE_STATIC);
		step(db, insert);
	}
	sqlite3_finalize(insert);
	run(db, "COMMIT;");
	sqlite3_close(db);
}

static void commits(struct worker *worker)
{
	sqlite3 *db = open_db(worker->folder);
	sqlite3_stmt *update = prepare(db, "UPDATE rows SET text = ? WHERE id = ?");
	unsigned int random = 42;
	char text[ROW];
	uint64_t since;

	for (since = now(); since < worker->end; since = now()) {
		memset(text, 'a' + draw(&random) % 26, ROW);
		sqlite3_bind_text(update, 1, text, ROW, SQLITE_STATIC);
		sqlite3_bind_int(update, 2, draw(&random) % ROWS);
		step(db, update);
		note(worker, since);
	}
	sqlite3_finalize(update);
	sqlite3_close(db);
}

static void deliver(const char *folder, int folder_fd, const char *data, unsigned int i)
{
	char from[256], to[256];
	int fd;

	snprintf(from, sizeof(from), "%s/new-%u", folder, i);
	snprintf(to, sizeof(to), "%s/mail-%u", folder, i);
	fd = open(from, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (fd < 0 || write(fd, data, FILE_BYTES) != FILE_BYTES || fsync(fd) || close(fd))
		die(from);
	if (rename(from, to) || fsync(folder_fd))
		die(to);
	if (i >= KEEP) {
		snprintf(to, sizeof(to), "%s/mail-%u", folder, i - KEEP);
		if (unlink(to))
			die(to);
	}
}

static void *files(void *argument)
{
	struct worker *worker = argument;
	char folder[200], data[FILE_BYTES];
	unsigned int i = 0;
	uint64_t since;
	int fd;

	snprintf(folder, sizeof(folder), "%s/%u", worker->folder, worker->number);
	if (mkdir(folder, 0700))
		die(folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		die(folder);
	memset(data, 'm', sizeof(data));
	for (since = now(); since < worker->end; since = now()) {
		deliver(folder, fd, data, i++);
		note(worker, since);
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[MOST_THREADS];
	unsigned int i, j, threads = argc == 5 ? atoi(argv[4]) : 1;
	uint64_t end;

	if (argc == 4 && !strcmp(argv[1], "fill")) {
		fill(argv[2], argv[3]);
		return 0;
	}
	if (argc < 4 || argc > 5 || threads < 1 || threads > MOST_THREADS) {
		fprintf(stderr, "guest-commits fill|sqlite|files FOLDER JOURNAL|MILLISECONDS [THREADS]\n");
		return 2;
	}
	end = now() + strtoull(argv[3], NULL, 10) * 1000000;
	for (i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .folder = argv[2], .number = i, .end = end };
		workers[i].took = malloc(MOST * sizeof(uint32_t));
		if (!workers[i].took)
			die("malloc");
		if (!strcmp(argv[1], "sqlite"))
			commits(&workers[i]);
		else if (pthread_create(&workers[i].thread, NULL, files, &workers[i]))
			die("pthread_create");
	}
	for (i = 0; i < threads; i++) {
		if (workers[i].thread)
			pthread_join(workers[i].thread, NULL);
		for (j = 0; j < workers[i].count; j++)
			printf("%u\n", workers[i].took[j]);
	}
	return 0;
}
