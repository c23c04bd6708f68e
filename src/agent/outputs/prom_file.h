// SPDX-License-Identifier: Apache-2.0
/*
 * A page as a file in a folder that node_exporter reads (its textfile collector), which may be shared with
 * others.
 *
 * Invariants
 *  1. A reader sees a whole page or no file: it is written beside, under a name that readers pass over, and
 *     renamed.
 *  2. No link of anybody is followed: neither the folder's own name nor what lies in it. What has the file's
 *     name is replaced, not written to.
 *  3. What could not be replaced is removed, if it is ours: an old page must not look alive.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct prom_file {
	char folder[PATH_MAX];
	char name[NAME_MAX + 1];
	char beside[NAME_MAX + 1];
	/* of what was written last; 0: nothing */
	dev_t device;
	ino_t inode;
};

enum { PROM_FILE_ERROR = 640 };

/* @path: a folder, for gpusonde.prom in it, or a file whose name ends with .prom. -EINVAL: it is neither. */
int prom_file_init(const char *path, struct prom_file *ret_file);
/* -errno: *ret_why has cause and remedy. */
int prom_file_write(struct prom_file *file, const void *data, size_t n, char ret_why[static PROM_FILE_ERROR]);
/* If it is still the one that was written. */
void prom_file_remove(struct prom_file *file);
