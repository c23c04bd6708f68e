// SPDX-License-Identifier: Apache-2.0
/* Which files there are (file.c), and what they contain (tables.c). */
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
	FILE_ARCHS = 4, /* of one file, that are kept at once */
	FILE_IDS = 16, /* by which one file is known: it lies in so many containers */
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
		uint32_t n; /* one after the other */
	} failed[TABLES];
	struct stub_table *stubs;
	struct figures *figures[FILE_ARCHS];
	uint64_t used;
	uint64_t bytes; /* of its tables */
	uint32_t busy; /* must stay */
	uint32_t users; /* mappings of processes that we know */
	int fd; /* while it has users and may have device code: it can be read when they have ended; or -1 */
};

/* How to open a file again: as mapped, or as named. */
struct place {
	pid_t pid;
	uint64_t start, end, dev, ino; /* end 0: by path alone */
	const char *path;
	const int *fd; /* or it is open already */
};

/* The file at @place, known or new; it stays while it is busy. */
int file_find(struct symbolizer *symbolizer, const struct place *place, struct file **ret_file);
/* It has a mapping more, or one less. */
void file_use(struct file *file);
void file_leave(struct symbolizer *symbolizer, struct file *file);
/* What is held open of it. */
void file_let_go(struct symbolizer *symbolizer, struct file *file);
/* Opens it again; what lies at its place now must be the same file. -ESTALE */
int file_open(struct symbolizer *symbolizer, struct file *file, const struct place *place, int *ret_fd);
/* -ESTALE: written into since; nothing that was read of it can be believed. */
int file_unchanged(struct file *file, int fd);
void files_done(struct symbolizer *symbolizer);
/* Tables of the least used go until the rest fits the limits. */
void make_room(struct symbolizer *symbolizer);

/* tables.c */

/*
 * -ENODATA: it has none; -EAGAIN: it could not be read, and is not tried again yet. Valid until other tables
 * are asked for, unless it is busy.
 */
int file_stubs(struct symbolizer *symbolizer, struct file *file, const struct place *place,
	       const struct stub_table **ret_stubs);
int file_figures(struct symbolizer *symbolizer, struct file *file, const struct place *place, uint16_t sm,
		 const struct figures **ret_figures);
/* Whether it has device code: 1, 0, or -errno where that could not be found out. */
int file_has_device_code(struct symbolizer *symbolizer, struct file *file, const struct place *place);
