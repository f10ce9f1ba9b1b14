/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A workload for sqlite: tables, indices, joins, transactions, text search by
 * pattern, window functions, recursion, in memory and in a file. Prints results
 * and a checksum; ends with status 1 at the first error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sqlite3.h"

static unsigned long checksum = 5381;

static int row(void *unused, int columns, char **values, char **names)
{
	(void)unused;
	(void)names;
	for (int i = 0; i < columns; i++)
		for (const char *c = values[i] ? values[i] : "NULL"; *c; c++)
			checksum = checksum * 33 + (unsigned char)*c;
	return 0;
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, row, NULL, &error) != SQLITE_OK) {
		printf("%s: %s\n", sql, error);
		exit(1);
	}
	printf("%016lx %.40s\n", checksum, sql);
}

static void fill(sqlite3 *db)
{
	sqlite3_stmt *insert;

	run(db, "BEGIN");
	sqlite3_prepare_v2(db, "INSERT INTO item VALUES (?, ?, ?, ?)", -1, &insert, NULL);
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "item %d", i * 7919 % 5003);
		sqlite3_bind_int(insert, 1, i);
		sqlite3_bind_text(insert, 2, name, -1, SQLITE_TRANSIENT);
		sqlite3_bind_double(insert, 3, (i * 37 % 1000) / 8.0);
		sqlite3_bind_int(insert, 4, i % 17);
		if (sqlite3_step(insert) != SQLITE_DONE)
			exit(1);
		sqlite3_reset(insert);
	}
	sqlite3_finalize(insert);
	run(db, "COMMIT");
}

static void query(sqlite3 *db)
{
	static const char *const queries[] = {
		"CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INT)",
		"CREATE TABLE kind (id INTEGER PRIMARY KEY, label TEXT)",
		NULL,
		"INSERT INTO kind SELECT DISTINCT kind, 'kind ' || kind FROM item",
		"CREATE INDEX by_name ON item (name)",
		"CREATE INDEX by_kind ON item (kind, price DESC)",
		"SELECT label, count(*), sum(price), avg(price), max(name) FROM item JOIN kind"
		" ON kind.id = item.kind GROUP BY label ORDER BY 3 DESC",
		"SELECT * FROM item WHERE name LIKE '%99%' ORDER BY price, id LIMIT 50",
		"SELECT name, price, rank() OVER (PARTITION BY kind ORDER BY price DESC, id)"
		" FROM item WHERE id % 11 = 3",
		"WITH RECURSIVE n(i, f) AS (SELECT 1, 1.0 UNION ALL SELECT i + 1, f * (i + 1) FROM n"
		" WHERE i < 60) SELECT i, printf('%.6g', f) FROM n",
		"UPDATE item SET price = price * 1.25 WHERE kind IN (SELECT id FROM kind WHERE id % 2)",
		"DELETE FROM item WHERE id BETWEEN 1000 AND 1999",
		"SELECT json_group_array(json_object('k', kind, 'n', c)) FROM"
		" (SELECT kind, count(*) c FROM item GROUP BY kind)",
		"SELECT a.id, b.id FROM item a, item b WHERE a.name = b.name AND a.id < b.id"
		" ORDER BY a.id LIMIT 100",
		"SELECT hex(substr(group_concat(name), 1, 500)), strftime('%Y', 1e9, 'unixepoch') FROM item",
		"ANALYZE",
		"VACUUM",
		"PRAGMA integrity_check",
	};

	for (unsigned int i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		if (queries[i])
			run(db, queries[i]);
		else
			fill(db);
	}
}

int main(void)
{
	char path[] = "/tmp/twin-queries-XXXXXX";
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		return 1;
	query(db);
	sqlite3_close(db);
	close(mkstemp(path));
	if (sqlite3_open(path, &db) != SQLITE_OK)
		return 1;
	query(db);
	sqlite3_close(db);
	unlink(path);
	return 0;
}
