// SPDX-License-Identifier: Apache-2.0
/* A list of paths below which a process may open files (struct confinement). */
#pragma once

#include <limits.h>

enum { BELOW_MAX = 24 };

struct below {
	char paths[BELOW_MAX][PATH_MAX];
	const char *list[BELOW_MAX + 1]; /* NULL-terminated */
	unsigned n;
};

/* What does not fit is left out, and so are NULL and "". */
void below_add(struct below *below, const char *path);
/* The folder of a file, and that of what it is a link to: files are replaced by links to others. */
void below_add_folder_of(struct below *below, const char *path);
/* What libraries read for TLS: names, their resolvers, the system's certificates. */
void below_add_network(struct below *below);
