// SPDX-License-Identifier: Apache-2.0
/* Static libraries (ar): reads every member that can have images. */
#include "cubin/private.h"

#include <ar.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"

/* Parses the size in a member's header: decimal digits, then blanks. */
static int size_of(const struct ar_hdr *header, uint64_t *ret_size)
{
	struct cursor c = cursor_over(header->ar_size, sizeof(header->ar_size));
	int r;

	if (memcmp(header->ar_fmag, ARFMAG, sizeof(header->ar_fmag)) != 0)
		return -EINVAL;
	r = cursor_u64(&c, ret_size);
	if (r < 0)
		return r;
	cursor_skip_space(&c);
	return cursor_eof(&c) ? 0 : -EINVAL;
}

/* In BSD archives the name precedes the member's bytes. */
static void skip_name(const struct ar_hdr *header, struct range *member)
{
	struct cursor c = cursor_over(header->ar_name, sizeof(header->ar_name));
	uint64_t n;

	if (cursor_literal(&c, "#1/") && cursor_u64(&c, &n) == 0 && n <= member->size) {
		member->offset += n;
		member->size -= n;
	}
}

int archive_read(struct reader *reader, const struct range *range)
{
	uint64_t at = SARMAG, size;

	while (at < range->size) {
		struct ar_hdr header;
		struct range member;
		int r;

		if (reader_get(reader, range, at, &header, sizeof(header)) < 0 ||
		    size_of(&header, &size) < 0) {
			reader_trouble(reader, range->offset + at, "no header of an archive's member");
			return 0;
		}
		at += sizeof(header);
		if (size > range->size - at) {
			reader_trouble(reader, range->offset + at,
				       "a member of %llu bytes, of which %llu are there",
				       (unsigned long long)size, (unsigned long long)(range->size - at));
			size = range->size - at;
		}
		member = (struct range){ range->offset + at, size };
		skip_name(&header, &member);
		r = reader_stopped(reader);
		if (r == 0)
			r = read_any(reader, &member, true);
		/* Symbol and name tables, text, files of other architectures. */
		if (r < 0 && r != -ENOEXEC)
			return r;
		at += size + (size & 1);
	}
	return 0;
}
