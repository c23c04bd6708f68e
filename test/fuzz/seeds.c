// SPDX-License-Identifier: Apache-2.0
/*
 * Writes FOLDER/<fuzzer>/<name> for each file of unit/elf/slow.h that the fuzzer begins with, and then STAMP.
 *
 *	seeds FOLDER [STAMP]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "elf/slow.h"

/* Within test/fuzz/run's -max_len. */
static const struct {
	const char *fuzzer, *name;
	enum slow_kind kind;
	unsigned n;
} seeds[] = {
	{ "site", "jumps", SLOW_FUNCTION, 1 },       { "sites", "jumps", SLOW_JUMPS, 3 },
	{ "sites", "overlaps", SLOW_OVERLAPS, 200 }, { "sites", "names", SLOW_NAMES, 2000 },
	{ "elf", "jumps", SLOW_JUMPS, 3 },           { "elf", "names", SLOW_NAMES, 2000 },
	{ "stub", "names", SLOW_NAMES, 2000 },       { "stub", "product", SLOW_STUBS, 1500 },
};

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void put_file(const char *path, const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		fail(path);
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		fail(path);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return EXIT_FAILURE;
	make_folder(argv[1]);
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		char path[4096];
		size_t size;
		uint8_t *bytes = slow_make(seeds[i].kind, seeds[i].n, &size);

		snprintf(path, sizeof(path), "%s/%s", argv[1], seeds[i].fuzzer);
		make_folder(path);
		snprintf(path, sizeof(path), "%s/%s/%s", argv[1], seeds[i].fuzzer, seeds[i].name);
		put_file(path, bytes, size);
		free(bytes);
	}
	if (argc == 3)
		put_file(argv[2], NULL, 0);
	return EXIT_SUCCESS;
}
