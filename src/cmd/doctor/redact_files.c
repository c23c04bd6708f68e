// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor/redact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { FILE_MAX = 64 << 10, FOLDER_FILES_MAX = 1024 };

static int read_secrets(struct redactor *redactor, int folder, const char *name)
{
	_cleanup_free_ char *text = malloc(FILE_MAX);
	int r = text ? read_file_at(folder, name, text, FILE_MAX, NULL) : -ENOMEM;

	if (r == 0)
		redactor_secrets(redactor, text);
	if (text)
		explicit_bzero(text, FILE_MAX);
	return r;
}

static void read_secret_folder(struct redactor *redactor, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	for (unsigned i = 0; dir && i < FOLDER_FILES_MAX && (e = readdir(dir)); i++)
		read_secrets(redactor, dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
}

void redactor_secret_files(struct redactor *redactor, const struct options *options)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < OPTIONS; i++) {
		const char *below = option_table[i].secret;
		const char *named = below ? options_text(options, i) : NULL;

		if (!named)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", named, *below ? "/" : "", below);
		if (read_secrets(redactor, AT_FDCWD, path) == -EISDIR && !*below)
			read_secret_folder(redactor, path);
	}
}
