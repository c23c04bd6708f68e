// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

const char *cubin_kind_name(enum cubin_kind kind)
{
	static const char *const names[] = { [CUBIN_PTX] = "ptx", [CUBIN_ELF] = "elf", [CUBIN_OTHER] = "other" };

	return names[kind];
}

const char *cubin_compression_name(enum cubin_compression compression)
{
	static const char *const names[CUBIN_COMPRESSIONS] = {
		[CUBIN_PLAIN] = "none", [CUBIN_LZ4] = "lz4", [CUBIN_ZSTD] = "zstd", [CUBIN_LZ_OLD] = "lz"
	};

	return names[compression];
}

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

	if (++reader->troubles > TROUBLES_MAX || !reader->ops->trouble)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	reader->ops->trouble(offset, text, reader->userdata);
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

static void reader_done(struct reader *reader)
{
	struct buffer *buffers[] = { &reader->stored, &reader->whole, &reader->headers, &reader->metadata,
				     &reader->stream, &reader->slots, &reader->facts,   &reader->pieces };

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		free(buffers[i]->bytes);
	ZSTD_freeDCtx(reader->zstd);
}

int cubin_read(const struct cubin_source *source, const struct cubin_limits *limits,
	       const struct cubin_ops *ops, void *userdata)
{
	_cleanup_(reader_done) struct reader reader = {
		.source = source, .ops = ops, .userdata = userdata, .budget = 4ull << 30
	};
	const struct range all = { 0, source->size };
	int r;

	if (limits)
		reader.limits = *limits;
	if (!reader.limits.image_bytes)
		reader.limits.image_bytes = CUBIN_IMAGE_BYTES;
	if (!reader.limits.metadata_bytes)
		reader.limits.metadata_bytes = CUBIN_METADATA_BYTES;
	/* Of the libraries known none has more than 15 times its size. */
	if (source->size != UINT64_MAX)
		reader.budget += MIN(source->size, 1ull << 50) * 64;
	r = read_any(&reader, &all, false);
	if (reader.troubles > TROUBLES_MAX && ops->trouble) {
		char text[64];

		snprintf(text, sizeof(text), "%llu more things that could not be read",
			 (unsigned long long)(reader.troubles - TROUBLES_MAX));
		ops->trouble(0, text, userdata);
	}
	if (r == 0 && reader.images == 0 && reader.troubles == 0)
		return -ENODATA;
	return r;
}
