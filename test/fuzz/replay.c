// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a fuzzer over the files of its corpus, and over every beginning of each: input that is cut
 * short is the commonest damage. Speaks TAP, one case per file.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { LARGEST = 1 << 20, CUTS_UP_TO = 4096 };

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

int main(int argc, char **argv)
{
	static char data[LARGEST];
	struct dirent **files;
	int n, failed = 0;

	n = argc == 2 ? scandir(argv[1], &files, not_hidden, alphasort) : -1;
	if (n <= 0) {
		printf("Bail out! no corpus in %s\n", argc == 2 ? argv[1] : "(one folder, please)");
		return EXIT_FAILURE;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		char path[4096];
		size_t size = 0;
		int r;

		snprintf(path, sizeof(path), "%s/%s", argv[1], files[i]->d_name);
		r = read_file(path, data, sizeof(data), &size);
		failed += r < 0;
		for (size_t cut = 0; r == 0 && cut < MIN(size, (size_t)CUTS_UP_TO); cut++)
			run(data, cut);
		run(data, size);
		printf("%s %d - %s\n", r < 0 ? "not ok" : "ok", i + 1, files[i]->d_name);
		fflush(stdout);
		free(files[i]);
	}
	free(files);
	return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
