// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_OURS "it is not a store of gpusonde, or damaged"
enum {
	APPLICATION = 0x67735344, /* "gsSD", of files of SQLite */
	FORMAT = 3, /* some blocks are packed (block_pack.h) */
	FORMAT_PLAIN = 2, /* no block is */
	BUSY_MS = 2000,
	LIST_MAX = 1 << 20,
	DATA_MAX = 64 << 20,
};

struct database {
	sqlite3 *sqlite;
	char error[256];
};

/* ---- files ---- */

/* SQLite has its system calls once for the process. */
static int the_folder = -1;

/* SQLite's names are "/NAME", since it is told that it works in "/". */
static const char *file_name(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

static int folder_open(const char *path, int flags, mode_t mode)
{
	return openat(the_folder, file_name(path), flags | O_NOFOLLOW | O_CLOEXEC, mode);
}

static int folder_stat(const char *path, struct stat *st)
{
	return fstatat(the_folder, file_name(path), st, AT_SYMLINK_NOFOLLOW);
}

/* What may not be done with it is told when it is opened. */
static int folder_access(const char *path, int mode)
{
	struct stat st;

	(void)mode;
	return folder_stat(path, &st);
}

static int folder_unlink(const char *path)
{
	return unlinkat(the_folder, file_name(path), 0);
}

static char *folder_cwd(char *path, size_t size)
{
	snprintf(path, size, "/");
	return path;
}

static int use_folder(int folder)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {
		{ "open", (sqlite3_syscall_ptr)folder_open },
		{ "stat", (sqlite3_syscall_ptr)folder_stat },
		{ "lstat", (sqlite3_syscall_ptr)folder_stat },
		{ "access", (sqlite3_syscall_ptr)folder_access },
		{ "unlink", (sqlite3_syscall_ptr)folder_unlink },
		{ "getcwd", (sqlite3_syscall_ptr)folder_cwd },
	};
	sqlite3_vfs *vfs;

	the_folder = folder;
	vfs = sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find("unix") : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!vfs || vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call) != SQLITE_OK)
			return -ENOSYS;
	return 0;
}

/* ---- statements ---- */

static int error_of(struct database *db, int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW)
		return 0;
	snprintf(db->error, sizeof(db->error), "%s",
		 db->sqlite ? sqlite3_errmsg(db->sqlite) : sqlite3_errstr(result));
	switch (result & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_TOOBIG:
		return -E2BIG;
	default:
		return -EIO;
	}
}

static int execute(struct database *db, const char *sql)
{
	return error_of(db, sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL));
}

static int prepare(struct database *db, const char *sql, sqlite3_stmt **ret_statement)
{
	return error_of(db, sqlite3_prepare_v2(db->sqlite, sql, -1, ret_statement, NULL));
}

/* To its end; its only row's first column, if it has one. */
static int run_statement(struct database *db, sqlite3_stmt *statement, int64_t *ret_number)
{
	int result = sqlite3_step(statement), r = error_of(db, result);

	if (r == 0 && result == SQLITE_ROW && ret_number)
		*ret_number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return r;
}

/* A statement with up to two numbers. */
static int query_number(struct database *db, const char *sql, int64_t a, int64_t b, int64_t *ret_number)
{
	sqlite3_stmt *statement;
	int r = prepare(db, sql, &statement), n;

	if (r < 0)
		return r;
	n = sqlite3_bind_parameter_count(statement);
	if (n > 0)
		sqlite3_bind_int64(statement, 1, a);
	if (n > 1)
		sqlite3_bind_int64(statement, 2, b);
	return run_statement(db, statement, ret_number);
}

/* ---- opening ---- */

static int make_tables(struct database *db)
{
	char sql[900];

	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE;"
		 "CREATE TABLE layout(id INTEGER PRIMARY KEY, text BLOB NOT NULL);"
		 "CREATE TABLE block(id INTEGER PRIMARY KEY AUTOINCREMENT, layout INTEGER NOT NULL,"
		 " tier INTEGER NOT NULL, frames INTEGER NOT NULL,"
		 " real_first INTEGER NOT NULL, real_last INTEGER NOT NULL,"
		 " boot_first INTEGER NOT NULL, boot_last INTEGER NOT NULL, data BLOB NOT NULL);"
		 "CREATE INDEX block_tier ON block(tier, id, frames);"
		 "PRAGMA application_id=%d; PRAGMA user_version=%d;"
		 "COMMIT",
		 APPLICATION, FORMAT);
	return execute(db, sql);
}

/* From now on a program that reads the former one alone refuses it. */
static int set_format(struct database *db)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", FORMAT);
	return execute(db, sql);
}

static int check_format(struct database *db, bool writes, char *why, size_t size)
{
	int64_t application = 0, format = 0, tables = 0;
	int r = query_number(db, "PRAGMA application_id", 0, 0, &application);

	if (r == 0)
		r = query_number(db, "PRAGMA user_version", 0, 0, &format);
	if (r == 0)
		r = query_number(db, "SELECT count(*) FROM sqlite_schema", 0, 0, &tables);
	if (r < 0) {
		snprintf(why, size, "%s", r == -EBADMSG ? NOT_OURS : db->error);
		return r;
	}
	if (application == 0 && tables == 0 && writes)
		return make_tables(db);
	if (application != APPLICATION) {
		snprintf(why, size, "it is not a store of gpusonde");
		return -EBADMSG;
	}
	if (format == FORMAT_PLAIN && writes)
		return set_format(db);
	if (format == FORMAT || format == FORMAT_PLAIN)
		return 0;
	snprintf(why, size, "it is of format %lld, and this gpusonde reads formats %d and %d: %s",
		 (long long)format, FORMAT_PLAIN, FORMAT,
		 format > FORMAT ? "use a later version" : "use the version that wrote it, or another file");
	return -EBADMSG;
}

/* A file that others may have made: no SQL of its own, and nothing is trusted. */
static void distrust(struct database *db)
{
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, DATA_MAX);
}

static int open_database(struct database *db, const char *name, bool writes)
{
	int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY, r;
	char path[300];

	snprintf(path, sizeof(path), "/%s", name);
	r = error_of(db, sqlite3_open_v2(path, &db->sqlite, flags | SQLITE_OPEN_NOFOLLOW, "unix"));
	if (r < 0)
		return r;
	distrust(db);
	sqlite3_busy_timeout(db->sqlite, BUSY_MS);
	return execute(db, "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-2048;");
}

static int prepare_writing(struct database *db)
{
	return execute(db,
		       "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=512;"
		       "PRAGMA journal_size_limit=4194304;");
}

int database_open(int folder, const char *name, bool writes, struct database **ret_database, char *why,
		  size_t size)
{
	_cleanup_(database_closep) struct database *db = calloc(1, sizeof(*db));
	int r;

	if (!db)
		return -ENOMEM;
	r = use_folder(folder);
	if (r == 0)
		r = open_database(db, name, writes);
	if (r < 0) {
		snprintf(why, size, "%s", r == -EBADMSG ? NOT_OURS : *db->error ? db->error : strerror(-r));
		return r;
	}
	*why = '\0';
	r = check_format(db, writes, why, size);
	if (r == 0 && writes)
		r = prepare_writing(db);
	if (r < 0) {
		if (!*why)
			snprintf(why, size, "%s", db->error);
		return r;
	}
	*ret_database = TAKE_PTR(db);
	return 0;
}

void database_close(struct database *db)
{
	if (!db)
		return;
	sqlite3_close(db->sqlite);
	free(db);
}

const char *database_error(const struct database *db)
{
	return db->error;
}

/* ---- writing ---- */

int database_limit(struct database *db, uint64_t bytes)
{
	int64_t page = 4096;
	char sql[64];
	int r = query_number(db, "PRAGMA page_size", 0, 0, &page);

	if (r < 0)
		return r;
	snprintf(sql, sizeof(sql), "PRAGMA max_page_count=%llu",
		 (unsigned long long)(bytes / (uint64_t)page + 1));
	return execute(db, sql);
}

int database_put_layout(struct database *db, const char *text, size_t n, int64_t *ret_id)
{
	sqlite3_stmt *statement;
	int r = prepare(db, "SELECT id FROM layout WHERE text=?1", &statement);

	if (r < 0)
		return r;
	*ret_id = 0;
	sqlite3_bind_blob64(statement, 1, text, n, SQLITE_STATIC);
	r = run_statement(db, statement, ret_id);
	if (r < 0 || *ret_id)
		return r;
	r = prepare(db, "INSERT INTO layout(text) VALUES(?1)", &statement);
	if (r < 0)
		return r;
	sqlite3_bind_blob64(statement, 1, text, n, SQLITE_STATIC);
	r = run_statement(db, statement, NULL);
	*ret_id = sqlite3_last_insert_rowid(db->sqlite);
	return r;
}

int database_put(struct database *db, struct stored_block *block, const void *data, size_t n)
{
	sqlite3_stmt *statement;
	int r = prepare(db,
			"INSERT OR REPLACE INTO block(id,layout,tier,frames,real_first,real_last,boot_first,"
			"boot_last,data) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
			&statement);

	if (r < 0)
		return r;
	if (block->id)
		sqlite3_bind_int64(statement, 1, block->id);
	sqlite3_bind_int64(statement, 2, block->layout);
	sqlite3_bind_int64(statement, 3, block->tier);
	sqlite3_bind_int64(statement, 4, block->frames);
	sqlite3_bind_int64(statement, 5, block->real_first_ns);
	sqlite3_bind_int64(statement, 6, block->real_last_ns);
	sqlite3_bind_int64(statement, 7, block->boot_first_ns);
	sqlite3_bind_int64(statement, 8, block->boot_last_ns);
	sqlite3_bind_blob64(statement, 9, data, n, SQLITE_STATIC);
	r = run_statement(db, statement, NULL);
	if (r == 0 && !block->id)
		block->id = sqlite3_last_insert_rowid(db->sqlite);
	return r;
}

int database_keep(struct database *db, uint32_t tier, uint64_t frames, uint64_t *ret_n)
{
	int64_t kept = 0, id = 0, of_it = 0;
	int r = query_number(db, "SELECT coalesce(sum(frames),0) FROM block WHERE tier=?1", tier, 0, &kept);

	*ret_n = 0;
	while (r == 0 && (uint64_t)kept > frames) {
		id = 0;
		r = query_number(db, "SELECT id FROM block WHERE tier=?1 ORDER BY id LIMIT 1", tier, 0, &id);
		if (r == 0)
			r = query_number(db, "SELECT frames FROM block WHERE id=?1", id, 0, &of_it);
		/* The last ones are kept until others make up for them. */
		if (r < 0 || of_it <= 0 || (uint64_t)(kept - of_it) < frames)
			break;
		r = query_number(db, "DELETE FROM block WHERE id=?1", id, 0, NULL);
		kept -= of_it;
		*ret_n += r == 0;
	}
	return r;
}

int database_drop_oldest(struct database *db, int64_t except)
{
	int64_t id = 0;
	int r = query_number(db, "SELECT id FROM block WHERE id<>?1 ORDER BY id LIMIT 1", except, 0, &id);

	if (r == 0 && id == 0)
		return -ENOENT;
	return r == 0 ? query_number(db, "DELETE FROM block WHERE id=?1", id, 0, NULL) : r;
}

int database_figures(struct database *db, struct database_figures *ret_figures)
{
	int64_t pages = 0, unused = 0, page = 0, blocks = 0;
	int r = query_number(db, "PRAGMA page_count", 0, 0, &pages);

	if (r == 0)
		r = query_number(db, "PRAGMA freelist_count", 0, 0, &unused);
	if (r == 0)
		r = query_number(db, "PRAGMA page_size", 0, 0, &page);
	if (r == 0)
		r = query_number(db, "SELECT count(*) FROM block", 0, 0, &blocks);
	if (r < 0)
		return r;
	*ret_figures = (struct database_figures){ (uint64_t)((pages - unused) * page), (uint64_t)blocks };
	return 0;
}

/* ---- reading ---- */

static struct stored_block block_of(sqlite3_stmt *statement)
{
	return (struct stored_block){
		.id = sqlite3_column_int64(statement, 0),
		.layout = sqlite3_column_int64(statement, 1),
		.tier = (uint32_t)sqlite3_column_int64(statement, 2),
		.frames = (uint32_t)sqlite3_column_int64(statement, 3),
		.real_first_ns = sqlite3_column_int64(statement, 4),
		.real_last_ns = sqlite3_column_int64(statement, 5),
		.boot_first_ns = sqlite3_column_int64(statement, 6),
		.boot_last_ns = sqlite3_column_int64(statement, 7),
	};
}

static int list_rows(struct database *db, sqlite3_stmt *statement, struct stored_block **list, size_t *n)
{
	size_t room = 0;
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		if (*n == LIST_MAX)
			return -E2BIG;
		if (*n == room) {
			struct stored_block *bigger;

			room = MAX((size_t)256, room * 2);
			bigger = reallocarray(*list, room, sizeof(*bigger));
			if (!bigger)
				return -ENOMEM;
			*list = bigger;
		}
		(*list)[(*n)++] = block_of(statement);
	}
	return error_of(db, result);
}

int database_list(struct database *db, struct stored_block **ret_blocks, size_t *ret_n)
{
	_cleanup_free_ struct stored_block *list = NULL;
	sqlite3_stmt *statement;
	size_t n = 0;
	int r = prepare(db,
			"SELECT id,layout,tier,frames,real_first,real_last,boot_first,boot_last FROM block "
			"ORDER BY id",
			&statement);

	if (r < 0)
		return r;
	r = list_rows(db, statement, &list, &n);
	sqlite3_finalize(statement);
	if (r < 0)
		return r;
	*ret_blocks = TAKE_PTR(list);
	*ret_n = n;
	return 0;
}

static int get_blob(struct database *db, const char *sql, int64_t id, void **ret_data, size_t *ret_n)
{
	sqlite3_stmt *statement;
	int r = prepare(db, sql, &statement), result;

	if (r < 0)
		return r;
	sqlite3_bind_int64(statement, 1, id);
	result = sqlite3_step(statement);
	r = result == SQLITE_DONE ? -ENOENT : error_of(db, result);
	if (r == 0) {
		const void *data = sqlite3_column_blob(statement, 0);

		*ret_n = (size_t)sqlite3_column_bytes(statement, 0);
		*ret_data = malloc(*ret_n + 1);
		if (!*ret_data)
			r = -ENOMEM;
		else if (*ret_n > 0)
			memcpy(*ret_data, data, *ret_n);
	}
	sqlite3_finalize(statement);
	return r;
}

int database_get(struct database *db, int64_t id, void **ret_data, size_t *ret_n)
{
	return get_blob(db, "SELECT data FROM block WHERE id=?1", id, ret_data, ret_n);
}

int database_get_layout(struct database *db, int64_t id, void **ret_data, size_t *ret_n)
{
	return get_blob(db, "SELECT text FROM layout WHERE id=?1", id, ret_data, ret_n);
}
