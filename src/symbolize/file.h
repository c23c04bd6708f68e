// SPDX-License-Identifier: Apache-2.0
/*
 * Known files (file.c), and their contents (tables.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "elf/elf.h"
#include "symbolize/figures.h"
#include "symbolize/stubs.h"

enum {
	FILES = 1024,
	FILE_ARCHS = 4, /* tables stored for one file */
	FILE_IDS = 16, /* identities stored for one file: containers may have many copies */
	FILE_LOADS = 16,
	OPEN_FILES = 128,
};

struct symbolizer;

struct file_id {
	uint64_t dev, ino, size;
	struct timespec changed;
};

enum table { TABLE_DEVICE_CODE, TABLE_STUBS, TABLE_FIGURES, TABLES };

struct file {
	struct file_id ids[FILE_IDS];
	uint32_t ids_n;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_n; /* 0: none */
	uint64_t sample; /* hash of its bytes */
	struct elf_range loads[FILE_LOADS];
	uint32_t loads_n;
	enum { DEVICE_CODE_UNKNOWN, DEVICE_CODE_NONE, DEVICE_CODE } device_code;
	struct {
		int64_t ns;
		uint32_t n; /* number of entries */
	} failed[TABLES];
	struct stub_table *stubs;
	struct figures *figures[FILE_ARCHS];
	uint64_t used;
	uint64_t bytes; /* of its tables */
	uint32_t busy; /* must not be removed while it is > 0 */
	uint32_t users; /* mappings of known processes */
	/* open while it has users and may have device code, so that it can be read after their end; or -1 */
	int fd;
};

/* How to open a file again: by mapping, or by path. */
struct place {
	pid_t pid;
	uint64_t start, end, dev, ino; /* end 0: by path alone */
	const char *path;
	const int *fd; /* or an open descriptor */
};

/* Finds the file at @place, or adds it; it is not removed while it is busy. */
int file_find(struct symbolizer *symbolizer, const struct place *place, struct file **ret_file);
/* Counts the file's mappings. */
void file_use(struct file *file);
void file_leave(struct symbolizer *symbolizer, struct file *file);
/* Closes the held descriptor. */
void file_let_go(struct symbolizer *symbolizer, struct file *file);
/* Opens the file again; -ESTALE: the place now has another file. */
int file_open(struct symbolizer *symbolizer, struct file *file, const struct place *place, int *ret_fd);
/* -ESTALE: it was modified since, so its tables are invalid. */
int file_unchanged(struct file *file, int fd);
void files_done(struct symbolizer *symbolizer);
/* Frees tables of the least recently used files until the rest is within the limits. */
void make_room(struct symbolizer *symbolizer);

/* tables.c */

/*
 * -ENODATA: the file has none; -EAGAIN: it could not be read, and is not retried yet. Valid until the next
 * call for any tables, unless the file is busy.
 */
int file_stubs(struct symbolizer *symbolizer, struct file *file, const struct place *place,
	       const struct stub_table **ret_stubs);
int file_figures(struct symbolizer *symbolizer, struct file *file, const struct place *place, uint16_t sm,
		 const struct figures **ret_figures);
/* Whether it has device code: 1, 0, or -errno if this could not be determined. */
int file_has_device_code(struct symbolizer *symbolizer, struct file *file, const struct place *place);
