// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a fuzzer over the files of its folders, and over every beginning of each, of large ones over every
 * third or seventh, of each file other ones: input that is cut short is the commonest damage. Speaks TAP, one
 * case per file.
 *
 *	fuzz_<name> CORPUS [SEEDS]      the second folder need not exist
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { LARGEST = 1 << 20, CUTS_UP_TO = 4096, LARGE = 1024, LARGE_STEP = 3, LARGER_STEP = 7, FOLDERS = 2 };

/* From an allocation of exactly its size, so that a sanitizer sees the first byte beyond. */
static void run(const char *data, size_t size)
{
	_cleanup_free_ uint8_t *exact = malloc(size > 0 ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static struct dirent **files[FOLDERS];
static int files_n[FOLDERS];

/* Beginnings of file number @i, and all of it. */
static int replay(const char *folder, const char *name, int i)
{
	static char data[LARGEST];
	char path[4096];
	size_t size = 0, step;
	int r;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	r = read_file(path, data, sizeof(data), &size);
	if (r < 0)
		return r;
	step = size > CUTS_UP_TO ? LARGER_STEP : size > LARGE ? LARGE_STEP : 1;
	for (size_t cut = (size_t)i % step; cut < MIN(size, (size_t)CUTS_UP_TO); cut += step)
		run(data, cut);
	run(data, size);
	return 0;
}

int main(int argc, char **argv)
{
	int folders = MIN(argc - 1, FOLDERS), n = 0, done = 0, failed = 0;

	for (int f = 0; f < folders; f++) {
		files_n[f] = MAX(scandir(argv[f + 1], &files[f], not_hidden, alphasort), 0);
		n += files_n[f];
	}
	if (n == 0 || files_n[0] == 0) {
		printf("Bail out! no corpus in %s\n", folders ? argv[1] : "(a folder, please)");
		return EXIT_FAILURE;
	}
	printf("1..%d\n", n);
	for (int f = 0; f < folders; f++) {
		for (int i = 0; i < files_n[f]; i++) {
			int r = replay(argv[f + 1], files[f][i]->d_name, i);

			failed += r < 0;
			printf("%s %d - %s\n", r < 0 ? "not ok" : "ok", ++done, files[f][i]->d_name);
			fflush(stdout);
			free(files[f][i]);
		}
		free(files[f]);
	}
	return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
