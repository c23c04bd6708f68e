// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a CUDA binary, with limits so small that most images are streamed: what is told of images and
 * kernels lies within bounds, and is the same when they are decompressed whole.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cubin/cubin.h"

struct reading {
	size_t size;
	uint32_t images, container;
	uint64_t kernels, troubles;
	uint64_t sum; /* of what was told of kernels */
};

static int check_image(const struct cubin_image *image, void *userdata)
{
	struct reading *reading = userdata;
	char arch[KERNEL_ARCH_TEXT];

	if (image->number != reading->images++ || image->container < reading->container)
		abort();
	reading->container = image->container;
	if (image->offset > reading->size)
		abort();
	kernel_arch_text(image->arch, arch);
	if (strlen(arch) >= sizeof(arch) || !*cubin_kind_name(image->kind) ||
	    !*cubin_compression_name(image->compression))
		abort();
	return image->bytes % 16 == 15;
}

static int check_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct reading *reading = userdata;

	if (image->kind != CUBIN_ELF || strlen(kernel->symbol) != kernel->symbol_n)
		abort();
	for (int i = 0; i < KERNEL_FIGURES; i++) {
		if (kernel->figures[i] < -1)
			abort();
		reading->sum = reading->sum * 31 + (uint64_t)kernel->figures[i];
	}
	for (size_t i = 0; i < kernel->symbol_n; i++)
		reading->sum = reading->sum * 31 + (uint8_t)kernel->symbol[i];
	reading->sum += kernel->required_block[0] + kernel->cluster[2] + kernel->parameters_bytes;
	reading->kernels++;
	return 0;
}

static void check_trouble(uint64_t offset, const char *text, void *userdata)
{
	struct reading *reading = userdata;

	(void)offset;
	if (!*text || strlen(text) > 255)
		abort();
	reading->troubles++;
}

static struct reading read_with(const struct cubin_source *source, size_t image_bytes, size_t size)
{
	static const struct cubin_ops ops = { .image = check_image,
					      .kernel = check_kernel,
					      .trouble = check_trouble };
	const struct cubin_limits limits = { image_bytes, 256 << 10 };
	struct reading reading = { .size = size };
	int r = cubin_read(source, &limits, &ops, &reading);

	if (r != 0 && r != -ENODATA && r != -ENOEXEC)
		abort();
	if (r != 0 && (reading.images || reading.troubles) && r != -ENOEXEC)
		abort();
	return reading;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	const struct cubin_memory memory = { data, size };
	struct cubin_source source;
	struct reading whole, streamed;

	cubin_source_memory(&memory, &source);
	source.address = 0x10000; /* as the inputs count that have pointers */
	whole = read_with(&source, 1 << 20, size);
	streamed = read_with(&source, 1, size);
	if (whole.images != streamed.images)
		abort();
	/*
	 * What is wrong is found at another place in a stream, or behind what is needed of it, and so not at
	 * all.
	 */
	if (whole.troubles == 0 && streamed.troubles == 0 &&
	    (whole.kernels != streamed.kernels || whole.sum != streamed.sum))
		abort();
	return 0;
}
