// SPDX-License-Identifier: Apache-2.0
/*
 * stub_dump FILE [ROOT PATH]: the stubs of a file, as lines of JSON, then what was skipped and how long it
 * took. With ROOT and PATH the symbols of the separate debug file that PATH has below ROOT, too.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "cubin/stub.h"

/* Symbols have no characters that JSON would need to escape: see to it that they do not. */
static int print(const struct stub *stub, _unused_ void *userdata)
{
	if (strpbrk(stub->symbol, "\"\\"))
		return -EINVAL;
	printf("{\"address\":%" PRIu64 ",\"size\":%" PRIu64
	       ",\"symbol\":\"%s\",\"source\":\"%s\",\"handle\":%" PRIu64 "}\n",
	       stub->address, stub->size, stub->symbol,
	       stub->source == KERNEL_SOURCE_REGISTERED ? "registered" : "symbol", stub->handle_address);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_close_ int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, debug_fd = -1;
	struct timespec before, after;
	uint64_t skipped = 0;
	int r, found = -ENOENT;

	if (fd < 0 || (argc != 2 && argc != 4)) {
		fprintf(stderr, "usage: stub_dump FILE [ROOT PATH]\n");
		return 2;
	}
	if (argc == 4)
		found = stub_debug_file(fd, argv[2], argv[3], &debug_fd);
	clock_gettime(CLOCK_MONOTONIC, &before);
	r = stubs_read(fd, debug_fd, print, NULL, &skipped);
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("{\"result\":%d,\"debug\":%s,\"skipped\":%" PRIu64 ",\"seconds\":%.4f}\n", r,
	       found == 0 ? "true" : "false", skipped,
	       (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec));
	return r < 0;
}
