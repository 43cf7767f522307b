// SPDX-License-Identifier: GPL-2.0
/*
 * guest-sqlite FOLDER RECORDS [OTHERS]: sqlite as the FAST '24 artifact on fragmentation uses it.
 *
 * With OTHERS, RECORDS rows of four strings, 16 KiB, are inserted one by one, without sqlite's
 * journal. Behind each row, OTHERS KiB go to another file, with fdatasync; 0: nothing. Without
 * OTHERS, all rows are selected. The line that this prints is "select BYTES NANOSECONDS"; bytes as
 * the artifact counts them, 16 KiB a row.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define ROW 16384ul
#define CREATE "CREATE TABLE DB1(id INT PRIMARY KEY, " \
	"str1 VARCHAR(4096), str2 VARCHAR(4096), str3 VARCHAR(4096), str4 VARCHAR(4094));"

static void run(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
		fprintf(stderr, "guest-sqlite: %s\n", message);
		exit(1);
	}
}

static sqlite3 *open_db(const char *path, const char *synchronous)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(path);
	run(db, "PRAGMA journal_mode = off;");
	run(db, synchronous);
	return db;
}

/* The key falls from row to row; the last string is two bytes shorter. */
static void insert(sqlite3 *db, unsigned int key)
{
	static char sql[ROW + 256];
	static const unsigned int lengths[] = { 4096, 4096, 4096, 4094 };
	char *at = sql + sprintf(sql, "INSERT INTO DB1 VALUES(%u", key);
	unsigned int i;

	for (i = 0; i < 4; i++) {
		at += sprintf(at, ", '");
		memset(at, 'a' + (key + i) % 26, lengths[i]);
		at += lengths[i];
		*at++ = '\'';
	}
	sprintf(at, ");");
	run(db, sql);
}

static void insert_all(const char *path, const char *other, unsigned long records, unsigned long others)
{
	int file = open(other, O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0666);
	sqlite3 *db = open_db(path, "PRAGMA synchronous = on;");
	void *data = calloc(1, others + 1);

	if (file < 0 || !data)
		die(other);
	run(db, CREATE);
	while (records--) {
		insert(db, records);
		if (others && (write(file, data, others) != (ssize_t)others || fdatasync(file)))
			die(other);
	}
	close(file);
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	char path[256], other[256];
	unsigned long records;
	uint64_t start;
	sqlite3 *db;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "guest-sqlite FOLDER RECORDS [OTHERS]\n");
		return 2;
	}
	records = strtoul(argv[2], NULL, 10);
	snprintf(path, sizeof(path), "%s/testdb.db", argv[1]);
	snprintf(other, sizeof(other), "%s/dummy.data", argv[1]);
	if (argc == 4) {
		insert_all(path, other, records, strtoul(argv[3], NULL, 10) * 1024);
		return 0;
	}
	learn_extents(path);
	db = open_db(path, "PRAGMA synchronous = off;");
	start = now();
	run(db, "select * from DB1;");
	printf("select %lu %lu\n", records * ROW, now() - start);
	sqlite3_close(db);
	return 0;
}
