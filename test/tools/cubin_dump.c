// SPDX-License-Identifier: Apache-2.0
/*
 * Prints what cubin_read() says of a file, as lines of JSON: cubin_dump [-s] [-i image_bytes] [-m
 * metadata_bytes] FILE -s: only how much there was, and how long it took. -i and -m set the limits. Names go
 * out as they are: those of compilers need no escapes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cubin/cubin.h"

struct dump {
	bool summary;
	uint64_t images, elf, kernels, troubles, bytes, uncompressed;
};

static int print_image(const struct cubin_image *image, void *userdata)
{
	struct dump *dump = userdata;
	char arch[KERNEL_ARCH_TEXT];

	dump->images++;
	if (image->kind == CUBIN_ELF) {
		dump->elf++;
		dump->bytes += image->bytes;
		dump->uncompressed += image->uncompressed_bytes;
	}
	if (dump->summary)
		return 0;
	kernel_arch_text(image->arch, arch);
	printf("{\"image\":%u,\"container\":%u,\"relocatable\":%s,\"kind\":\"%s\",\"number\":%u,"
	       "\"arch\":\"%s\",\"compression\":\"%s\",\"debug\":%s,\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"uncompressed_bytes\":%" PRIu64 ",\"flags\":%" PRIu64 "}\n",
	       image->number, image->container, image->relocatable ? "true" : "false",
	       cubin_kind_name(image->kind), image->kind_number, arch,
	       cubin_compression_name(image->compression), image->debug ? "true" : "false", image->offset,
	       image->bytes, image->uncompressed_bytes, image->flags);
	return 0;
}

static int print_kernel(const struct cubin_image *image, const struct cubin_kernel *kernel, void *userdata)
{
	struct dump *dump = userdata;

	dump->kernels++;
	if (dump->summary)
		return 0;
	printf("{\"kernel\":\"%s\",\"image\":%u", kernel->symbol, image->number);
	for (int i = 0; i < KERNEL_FIGURES; i++)
		printf(",\"%s\":%" PRId64, kernel_figures[i].json, kernel->figures[i]);
	printf(",\"required_block\":[%u,%u,%u],\"cluster\":[%u,%u,%u],\"parameters_bytes\":%u}\n",
	       kernel->required_block[0], kernel->required_block[1], kernel->required_block[2],
	       kernel->cluster[0], kernel->cluster[1], kernel->cluster[2], kernel->parameters_bytes);
	return 0;
}

static void print_trouble(uint64_t offset, const char *text, void *userdata)
{
	struct dump *dump = userdata;

	dump->troubles++;
	printf("{\"trouble\":\"%s\",\"offset\":%" PRIu64 "}\n", text, offset);
}

static int usage(void)
{
	fprintf(stderr, "cubin_dump [-s] [-i image_bytes] [-m metadata_bytes] FILE\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct cubin_ops ops = { .image = print_image,
					      .kernel = print_kernel,
					      .trouble = print_trouble };
	struct dump dump = { 0 };
	struct cubin_limits limits = { 0 };
	struct cubin_source source;
	struct rusage usage_now;
	_cleanup_close_ int fd = -1;
	uint64_t begin = clock_mono_ns();
	int option, r;

	while ((option = getopt(argc, argv, "si:m:")) != -1) {
		if (option == 's')
			dump.summary = true;
		else if (option == 'i')
			limits.image_bytes = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			limits.metadata_bytes = strtoull(optarg, NULL, 0);
		else
			return usage();
	}
	if (optind + 1 != argc)
		return usage();
	fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || cubin_source_file(fd, &source) < 0) {
		fprintf(stderr, "%s: %m\n", argv[optind]);
		return 1;
	}
	r = cubin_read(&source, &limits, &ops, &dump);
	getrusage(RUSAGE_SELF, &usage_now);
	printf("{\"result\":%d,\"images\":%" PRIu64 ",\"elf\":%" PRIu64 ",\"kernels\":%" PRIu64
	       ",\"troubles\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"uncompressed_bytes\":%" PRIu64
	       ",\"seconds\":%.3f,\"peak_bytes\":%ld}\n",
	       r, dump.images, dump.elf, dump.kernels, dump.troubles, dump.bytes, dump.uncompressed,
	       (double)(clock_mono_ns() - begin) / 1e9, usage_now.ru_maxrss * 1024);
	return 0;
}
