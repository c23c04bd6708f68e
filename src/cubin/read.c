// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

enum { CHUNKS_HELD = 3 * CHUNK }; /* what streams need */

/*
 * No known library decompresses to more than 15 times its size. Plain images that do not overlap are smaller
 * than the file.
 */
enum { INFLATED_TIMES = 64, PLAIN_TIMES = 8 };
#define INFLATED_LEAST (256ull << 20)
#define PLAIN_LEAST (64ull << 20)
/* Of a process's memory it is not known where it ends. */
#define MEMORY_MOST (4ull << 30)
/* Sparse files can have any size. */
#define SIZE_COUNTED (4ull << 30)

int buffer_need(struct buffer *buffer, size_t n)
{
	if (n <= buffer->cap)
		return 0;
	/* Not realloc(3): the old bytes need not be copied. */
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
	buffer->bytes = malloc(n);
	if (!buffer->bytes)
		return -ENOMEM;
	buffer->cap = n;
	return 0;
}

static void unmap(struct buffer *buffer)
{
	if (buffer->bytes)
		munmap(buffer->bytes, buffer->cap);
	*buffer = (struct buffer){ 0 };
}

int buffer_map(struct buffer *buffer, size_t n)
{
	void *bytes;

	if (n <= buffer->cap)
		return 0;
	unmap(buffer);
	bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	*buffer = (struct buffer){ bytes, n };
	return 0;
}

ssize_t reader_some(struct reader *reader, const struct range *range, uint64_t offset, void *buf, size_t n)
{
	ssize_t r;

	if (offset >= range->size)
		return 0;
	n = MIN(n, range->size - offset);
	r = reader->source->read(reader->source->of, range->offset + offset, buf, n);
	return MIN(r, (ssize_t)n);
}

int reader_get(struct reader *reader, const struct range *range, uint64_t offset, void *buf, size_t n)
{
	reader->error = 0;
	if (n > range->size || offset > range->size - n)
		return -ENODATA;
	while (n > 0) {
		ssize_t r = reader_some(reader, range, offset, buf, n);

		if (r <= 0) {
			reader->error = (int)-r;
			return -ENODATA;
		}
		buf = (char *)buf + r;
		offset += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

const char *reader_why(const struct reader *reader)
{
	return reader->error ? strerror(reader->error) : "the file ends";
}

void reader_trouble(struct reader *reader, uint64_t offset, const char *format, ...)
{
	char text[256];
	va_list args;

	if (reader->passing || ++reader->troubles > CUBIN_TROUBLES_MAX || !reader->ops->trouble)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	reader->ops->trouble(offset, text, reader->userdata);
}

int reader_stopped(const struct reader *reader)
{
	return reader->ops->stop && reader->ops->stop(reader->userdata) ? -ECANCELED : 0;
}

int reader_spend(struct reader *reader, enum budget budget, uint64_t cost, uint64_t offset)
{
	struct left_out *left_out = &reader->left_out[budget];

	if (cost <= reader->budgets[budget]) {
		reader->budgets[budget] -= cost;
		return 0;
	}
	if (left_out->images++ == 0)
		left_out->offset = offset;
	return -EBADMSG;
}

bool reader_walk(struct reader *reader, uint64_t cost, uint64_t offset)
{
	if (!reader->exhausted && cost <= reader->budgets[BUDGET_PLAIN]) {
		reader->budgets[BUDGET_PLAIN] -= cost;
		return true;
	}
	if (!reader->exhausted)
		reader_trouble(
			reader, offset,
			"what follows is not looked for: the file leads to more than %d times its size",
			PLAIN_TIMES);
	reader->exhausted = true;
	return false;
}

void reader_sum_up(struct reader *reader)
{
	static const struct {
		const char *leads;
		int times;
	} texts[BUDGETS] = { [BUDGET_INFLATED] = { "decompresses", INFLATED_TIMES },
			     [BUDGET_PLAIN] = { "leads", PLAIN_TIMES } };

	for (int i = 0; i < BUDGETS; i++)
		if (reader->left_out[i].images)
			reader_trouble(
				reader, reader->left_out[i].offset,
				"kernels of %llu images, of which this is the first, are not read: the "
				"file %s to more than %d times its size",
				(unsigned long long)reader->left_out[i].images, texts[i].leads,
				texts[i].times);
}

static int read_elf(struct reader *reader, const struct range *range)
{
	Elf64_Ehdr header;

	if (reader_get(reader, range, 0, &header, sizeof(header)) < 0)
		return -ENOEXEC;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	return header.e_machine == CUBIN_MACHINE ? cubin_bare(reader, range) :
						   host_read(reader, range, &header);
}

int read_any(struct reader *reader, const struct range *range, bool in_archive)
{
	static const char elf[] = ELFMAG, archive[] = "!<arch>\n", thin[] = "!<thin>\n";
	uint32_t magic;
	char start[8];
	uint64_t size;
	ssize_t n = reader_some(reader, range, 0, start, sizeof(start));

	if (n < (ssize_t)sizeof(start))
		return n < 0 ? (int)n : -ENOEXEC;
	memcpy(&magic, start, sizeof(magic));
	if (memcmp(start, elf, SELFMAG) == 0)
		return read_elf(reader, range);
	if (magic == (uint32_t)CUBIN_FATBIN_MAGIC)
		return range->size == UINT64_MAX ? fatbin_container(reader, range, false, &size) :
						   fatbin_section(reader, range, false);
	if (magic == CUBIN_WRAPPER_MAGIC)
		return wrapper_read(reader, range);
	if (in_archive)
		return -ENOEXEC;
	if (memcmp(start, archive, sizeof(start)) == 0)
		return archive_read(reader, range);
	if (memcmp(start, thin, sizeof(start)) == 0) {
		reader_trouble(reader, range->offset,
			       "a thin archive: its members are files of their own; read those");
		return 0;
	}
	return -ENOEXEC;
}

int reader_need(struct reader *reader, struct buffer *buffer, size_t n)
{
	int r = 0;

	if (n > buffer->cap && n > reader->share && !reader->large) {
		r = team_alone(reader);
		reader->large = r == 0;
	}
	return r < 0 ? r : buffer_need(buffer, n);
}

static void give_back(struct buffer *buffer, size_t most)
{
	if (buffer->cap <= most)
		return;
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
}

/*
 * Frees pages after the first @keep bytes; freeing the whole buffer would require clearing all of it for the
 * next image.
 */
static void forget_pages(const struct buffer *buffer, size_t keep)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (keep + page - 1) / page * page;

	if (from < buffer->cap)
		madvise((char *)buffer->bytes + from, buffer->cap - from, MADV_DONTNEED);
}

void reader_settle(struct reader *reader)
{
	struct buffer *buffers[] = { &reader->headers, &reader->metadata, &reader->stream,
				     &reader->slots,   &reader->facts,    &reader->pieces };

	if (!reader->large)
		return;
	reader->large = false;
	forget_pages(&reader->stored, MAX(reader->whole_bytes / 2 + 1, (size_t)CHUNKS_HELD));
	forget_pages(&reader->whole, reader->whole_bytes + 1);
	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		give_back(buffers[i], reader->share);
}

void reader_done(struct reader *reader)
{
	struct buffer *buffers[] = { &reader->headers, &reader->metadata, &reader->stream,
				     &reader->slots,   &reader->facts,    &reader->pieces };

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		free(buffers[i]->bytes);
	unmap(&reader->stored);
	unmap(&reader->whole);
	ZSTD_freeDCtx(reader->zstd);
}

void reader_init(struct reader *reader, const struct cubin_limits *limits, unsigned threads)
{
	if (limits)
		reader->limits = *limits;
	if (!reader->limits.image_bytes)
		reader->limits.image_bytes = CUBIN_IMAGE_BYTES;
	if (!reader->limits.metadata_bytes)
		reader->limits.metadata_bytes = CUBIN_METADATA_BYTES;
	reader->whole_bytes = reader->limits.image_bytes / threads;
	/* Section headers, data about each, names: these are not all large at the same time. */
	reader->share = threads > 1 ? reader->limits.metadata_bytes / 3 / threads : SIZE_MAX;
	reader->budgets[BUDGET_INFLATED] = reader->budgets[BUDGET_PLAIN] = MEMORY_MOST;
	if (reader->source->size == UINT64_MAX)
		return;
	reader->budgets[BUDGET_INFLATED] =
		INFLATED_LEAST + MIN(reader->source->size, SIZE_COUNTED) * INFLATED_TIMES;
	reader->budgets[BUDGET_PLAIN] = PLAIN_LEAST + MIN(reader->source->size, SIZE_COUNTED) * PLAIN_TIMES;
}

int cubin_read(const struct cubin_source *source, const struct cubin_limits *limits,
	       const struct cubin_ops *ops, void *userdata)
{
	_cleanup_(reader_done) struct reader reader = { .source = source, .ops = ops, .userdata = userdata };
	const struct range all = { 0, source->size };
	int r;

	reader_init(&reader, limits, 1);
	r = read_any(&reader, &all, false);
	if (r == 0)
		reader_sum_up(&reader);
	if (reader.troubles > CUBIN_TROUBLES_MAX && ops->trouble) {
		char text[64];

		snprintf(text, sizeof(text), "%llu more things that could not be read",
			 (unsigned long long)(reader.troubles - CUBIN_TROUBLES_MAX));
		ops->trouble(0, text, userdata);
	}
	if (r == 0 && reader.images == 0 && reader.troubles == 0)
		return -ENODATA;
	return r;
}
