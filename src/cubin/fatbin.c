// SPDX-License-Identifier: Apache-2.0
/*
 * Fatbin containers and their images. NVIDIA publishes no documentation; layout, kinds and flags were
 * determined from the output of nvcc 9 to 13 and cuobjdump 13.
 */
#include "cubin/private.h"

#include <errno.h>
#include <string.h>

struct container {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t payload_bytes; /* behind the header */
};
_Static_assert(sizeof(struct container) == 16, "as in the file");

struct entry {
	uint16_t kind, version;
	uint32_t header_bytes; /* 64, and names and options of the compiler behind it */
	uint64_t payload_bytes; /* padded */
	uint32_t compressed_bytes;
	uint32_t options_at;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_at, name_bytes;
	uint64_t flags;
	uint64_t zero;
	uint64_t uncompressed_bytes; /* 0: it is not compressed */
};
_Static_assert(sizeof(struct entry) == 64, "as in the file");

enum {
	ENTRY_VERSION = 0x0101,
	KIND_PTX = 1,
	KIND_ELF = 2,
	KIND_ELF_OLD = 4, /* in other readers' tables an old cubin: read where it is an ELF file */
	ALIGNMENT = 8,
	PADDING_READ = 4096,
	PADDING_MAX = 1 << 20
};
enum {
	FLAG_DEBUG = 0x2,
	FLAG_LZ_OLD = 0x1000,
	FLAG_LZ4 = 0x2000,
	FLAG_ZSTD = 0x8000,
	FLAG_ARCH_SPECIFIC = 0x100000, /* sm_90a */
	FLAG_FAMILY_SPECIFIC = 0x200000, /* sm_100f */
};

static enum cubin_compression compression_of(const struct entry *entry)
{
	if (entry->flags & FLAG_LZ_OLD)
		return CUBIN_LZ_OLD;
	if (entry->uncompressed_bytes == 0)
		return CUBIN_PLAIN;
	return entry->flags & FLAG_ZSTD ? CUBIN_ZSTD : CUBIN_LZ4;
}

static struct cubin_image image_of(const struct entry *entry)
{
	struct cubin_image image = {
		.kind = entry->kind == KIND_PTX                                ? CUBIN_PTX :
			entry->kind == KIND_ELF || entry->kind == KIND_ELF_OLD ? CUBIN_ELF :
										 CUBIN_OTHER,
		.kind_number = entry->kind,
		.arch = { .sm = (uint16_t)MIN(entry->arch, (uint32_t)UINT16_MAX) },
		.compression = compression_of(entry),
		.debug = entry->flags & FLAG_DEBUG,
		.bytes = entry->uncompressed_bytes ? entry->compressed_bytes : entry->payload_bytes,
		.flags = entry->flags,
	};

	if (entry->flags & FLAG_ARCH_SPECIFIC)
		image.arch.variant = 'a';
	else if (entry->flags & FLAG_FAMILY_SPECIFIC)
		image.arch.variant = 'f';
	image.uncompressed_bytes = entry->uncompressed_bytes ? entry->uncompressed_bytes : image.bytes;
	return image;
}

static int read_image(struct reader *reader, struct cubin_image image, const struct range *payload)
{
	struct content content = { .reader = reader,
				   .stored = { payload->offset, image.bytes },
				   .compression = image.compression,
				   .size = image.uncompressed_bytes };
	int r;

	image.number = reader->images++;
	image.container = reader->containers;
	image.offset = payload->offset;
	r = reader->ops->image(&image, reader->userdata);
	if (r != 0 || image.kind != CUBIN_ELF || !reader->ops->kernel)
		return MIN(r, 0);
	if (image.bytes > payload->size) {
		reader_trouble(reader, payload->offset,
			       "compressed image of %llu bytes in an entry of %llu: its kernels are not read",
			       (unsigned long long)image.bytes, (unsigned long long)payload->size);
		return 0;
	}
	r = content_open(&content);
	if (r == 0 && !reader->passing)
		r = image_kernels(&content, &image, false);
	reader_settle(reader);
	return r == -EBADMSG ? 0 : r;
}

/* Reads the entries of one container; entries after an invalid one cannot be found. */
static int read_entries(struct reader *reader, const struct range *entries, bool relocatable)
{
	uint64_t at = 0;

	while (at < entries->size) {
		struct range payload;
		struct cubin_image image;
		struct entry entry;
		int r = reader_stopped(reader);

		if (r < 0)
			return r;
		if (!reader_walk(reader, WALK_COST, entries->offset + at))
			return 0;
		if (reader_get(reader, entries, at, &entry, sizeof(entry)) < 0) {
			reader_trouble(reader, entries->offset + at,
				       "the next image's header, %llu bytes of its container are left: %s",
				       (unsigned long long)(entries->size - at), reader_why(reader));
			return 0;
		}
		if (entry.version != ENTRY_VERSION || entry.header_bytes < sizeof(entry) ||
		    entry.header_bytes > entries->size - at ||
		    entry.payload_bytes > entries->size - at - entry.header_bytes) {
			reader_trouble(reader, entries->offset + at,
				       "no header of an image: version %#x, %u header bytes, %llu of payload",
				       entry.version, entry.header_bytes,
				       (unsigned long long)entry.payload_bytes);
			return 0;
		}
		payload = (struct range){ entries->offset + at + entry.header_bytes, entry.payload_bytes };
		image = image_of(&entry);
		image.relocatable = relocatable;
		r = read_image(reader, image, &payload);
		if (r < 0)
			return r;
		at += entry.header_bytes + entry.payload_bytes;
	}
	return 0;
}

int fatbin_container(struct reader *reader, const struct range *range, bool relocatable, uint64_t *ret_size)
{
	struct container container;
	struct range entries;
	int r;

	if (reader_get(reader, range, 0, &container, sizeof(container)) < 0)
		return -ENODATA;
	if (container.magic != (uint32_t)CUBIN_FATBIN_MAGIC || container.header_bytes < sizeof(container))
		return -ENODATA;
	r = team_part(reader);
	if (r < 0)
		return r;
	entries = (struct range){ range->offset + container.header_bytes, container.payload_bytes };
	if (range->size - MIN(range->size, container.header_bytes) < container.payload_bytes) {
		entries.size = range->size - MIN(range->size, container.header_bytes);
		reader_trouble(reader, range->offset, "a container of %llu bytes, of which %llu are there",
			       (unsigned long long)container.payload_bytes, (unsigned long long)entries.size);
	}
	r = read_entries(reader, &entries, relocatable);
	if (r < 0)
		return r;
	reader->containers++;
	*ret_size = container.header_bytes + entries.size;
	return 0;
}

/* Finds the next container's magic at or after @at. -ENODATA: none, or too far away. */
static int next_container(struct reader *reader, const struct range *range, uint64_t at, uint64_t *ret_at,
			  uint64_t *garbage)
{
	static const uint8_t zeros[ALIGNMENT];
	uint8_t bytes[PADDING_READ];
	uint64_t end = at + MIN(range->size - MIN(range->size, at), (uint64_t)PADDING_MAX);
	ssize_t n;

	while ((n = reader_some(reader, range, at, bytes, sizeof(bytes))) >= ALIGNMENT) {
		for (ssize_t i = 0; i + ALIGNMENT <= n; i += ALIGNMENT) {
			uint32_t magic;

			memcpy(&magic, bytes + i, sizeof(magic));
			if (magic == (uint32_t)CUBIN_FATBIN_MAGIC) {
				*ret_at = at + (uint64_t)i;
				return 0;
			}
			if (memcmp(bytes + i, zeros, ALIGNMENT) != 0)
				*garbage += ALIGNMENT;
		}
		at += (uint64_t)n / ALIGNMENT * ALIGNMENT;
		if (!reader_walk(reader, (uint64_t)n, range->offset + at))
			return -ENODATA;
		if (at >= end && at < range->size) {
			reader_trouble(
				reader, range->offset + at,
				"no container in %d bytes behind the last one: %llu more are not searched "
				"for any",
				PADDING_MAX, (unsigned long long)(range->size - at));
			return -ENODATA;
		}
	}
	if (n < 0)
		reader_trouble(reader, range->offset + at, "%s", strerror((int)-n));
	else if (at + (uint64_t)n < range->size)
		reader_trouble(reader, range->offset + at, "the file ends in the middle of its CUDA images");
	return -ENODATA;
}

int fatbin_section(struct reader *reader, const struct range *range, bool relocatable)
{
	uint64_t at = 0, garbage = 0;

	while (next_container(reader, range, at, &at, &garbage) == 0) {
		struct range rest = { range->offset + at, range->size - at };
		uint64_t size = 0;
		int r = reader_stopped(reader);

		if (r == 0)
			r = fatbin_container(reader, &rest, relocatable, &size);
		if (r == -ENODATA) {
			reader_trouble(reader, rest.offset, "the header of a container is wrong or cut off");
			/* The next may be 8 bytes further, and so on. */
			if (!reader_walk(reader, WALK_COST, rest.offset))
				break;
		} else if (r < 0) {
			return r;
		}
		/* They begin at multiples of 8. */
		at += MAX((size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, (uint64_t)ALIGNMENT);
	}
	if (garbage)
		reader_trouble(reader, range->offset, "%llu bytes between containers that are no padding",
			       (unsigned long long)garbage);
	return 0;
}
