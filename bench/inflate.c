// SPDX-License-Identifier: Apache-2.0
/*
 * A lower bound for reading all kernels of a file: inflate FILE. Decompresses its ELF images one after the
 * other with liblz4 and libzstd only, from memory into a buffer that is reused, and copies those that are not
 * compressed. Prints one line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cubin/cubin.h"

struct images {
	struct cubin_image *all;
	size_t n, cap, largest;
};

static int note(const struct cubin_image *image, void *userdata)
{
	struct images *images = userdata;

	if (image->kind != CUBIN_ELF)
		return 1;
	if (images->n == images->cap) {
		images->cap = images->cap ? 2 * images->cap : 1024;
		images->all = realloc(images->all, images->cap * sizeof(*images->all));
		if (!images->all)
			return -ENOMEM;
	}
	images->all[images->n++] = *image;
	images->largest = MAX(images->largest, (size_t)image->uncompressed_bytes);
	return 1;
}

static int skip(_unused_ const struct cubin_image *image, _unused_ const struct cubin_kernel *kernel,
		_unused_ void *userdata)
{
	return 0;
}

static int inflate(const struct cubin_image *image, const char *file, char *to, ZSTD_DCtx *zstd)
{
	size_t n = image->uncompressed_bytes;

	switch (image->compression) {
	case CUBIN_LZ4:
		return LZ4_decompress_safe(file + image->offset, to, (int)image->bytes, (int)n) == (int)n ?
			       0 :
			       -EBADMSG;
	case CUBIN_ZSTD:
		return ZSTD_decompressDCtx(zstd, to, n, file + image->offset, image->bytes) == n ? 0 :
												   -EBADMSG;
	default:
		memcpy(to, file + image->offset, image->bytes);
		return 0;
	}
}

static int measure(const struct images *images, const char *file)
{
	_cleanup_free_ char *to = calloc(1, images->largest);
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	uint64_t bytes = 0, uncompressed = 0;
	int64_t begin;

	if (!to || !zstd)
		return -ENOMEM;
	memset(to, 1, images->largest);
	begin = clock_mono_ns();
	for (size_t i = 0; i < images->n; i++) {
		if (inflate(&images->all[i], file, to, zstd) < 0)
			return -EBADMSG;
		bytes += images->all[i].bytes;
		uncompressed += images->all[i].uncompressed_bytes;
	}
	printf("{\"images\":%zu,\"bytes\":%llu,\"uncompressed_bytes\":%llu,\"seconds\":%.4f}\n", images->n,
	       (unsigned long long)bytes, (unsigned long long)uncompressed,
	       (double)(clock_mono_ns() - begin) / 1e9);
	ZSTD_freeDCtx(zstd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct cubin_ops ops = { .image = note, .kernel = skip };
	struct images images = { 0 };
	struct cubin_source source;
	_cleanup_close_ int fd = -1;
	void *file;
	int r;

	fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || cubin_source_file(fd, &source) < 0) {
		fprintf(stderr, "inflate FILE\n");
		return 2;
	}
	r = cubin_read(&source, NULL, &ops, &images);
	file = mmap(NULL, source.size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (r == 0)
		r = file == MAP_FAILED ? -errno : measure(&images, file);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	free(images.all);
	return r < 0;
}
