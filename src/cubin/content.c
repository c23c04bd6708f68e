// SPDX-License-Identifier: Apache-2.0
#include "cubin/private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int content_bad(struct content *content, uint64_t offset, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (content->compression == CUBIN_PLAIN)
		reader_trouble(content->reader, content->stored.offset + offset, "%s", text);
	else
		reader_trouble(content->reader, content->stored.offset,
			       "%s (at %#llx of the decompressed image)", text, (unsigned long long)offset);
	return -EBADMSG;
}

static int allowed(struct content *content)
{
	struct reader *reader = content->reader;
	/* A stream is decompressed twice. */
	uint64_t cost = content->size > reader->limits.image_bytes ? 2 * content->size : content->size;

	if (content->size > CUBIN_IMAGE_MAX) {
		reader_trouble(
			reader, content->stored.offset,
			"an image that says to be %llu bytes when decompressed: above %llu it is not read",
			(unsigned long long)content->size, CUBIN_IMAGE_MAX);
		return -EBADMSG;
	}
	return reader_spend(reader, BUDGET_INFLATED, cost, content->stored.offset);
}

int content_open(struct content *content)
{
	const struct cubin_limits *limits = &content->reader->limits;
	int r;

	if (content->compression == CUBIN_PLAIN)
		return reader_spend(content->reader, BUDGET_PLAIN, content->size, content->stored.offset);
	if (content->compression == CUBIN_LZ_OLD) {
		reader_trouble(
			content->reader, content->stored.offset,
			"compressed as toolkits before 7 did, which is not known: its kernels are not read");
		return -EBADMSG;
	}
	r = allowed(content);
	if (r < 0 || content->reader->passing || content->size > limits->image_bytes ||
	    content->stored.size > limits->image_bytes / 2)
		return r;
	return inflate_whole(content);
}

/* Bytes of a decompressed stream to be stored. */
struct gather {
	struct piece **order; /* by their offsets */
	uint8_t **to;
	size_t n, first; /* those before have all their bytes */
	uint64_t at;
};

static int gather(const uint8_t *bytes, size_t n, void *userdata)
{
	struct gather *g = userdata;

	for (size_t i = g->first; i < g->n && g->order[i]->offset < g->at + n; i++) {
		uint64_t begin = MAX(g->order[i]->offset, g->at);
		uint64_t end = MIN(g->order[i]->offset + g->order[i]->size, g->at + n);

		if (begin < end)
			memcpy(g->to[i] + (begin - g->order[i]->offset), bytes + (begin - g->at),
			       end - begin);
	}
	g->at += n;
	while (g->first < g->n && g->order[g->first]->offset + g->order[g->first]->size <= g->at)
		g->first++;
	return g->first == g->n;
}

static int by_offset(const void *a, const void *b)
{
	const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int stream_pieces(struct content *content, struct piece *pieces, size_t n)
{
	struct gather g = { .n = n };
	uint8_t *room = content->reader->metadata.bytes;
	int r;

	r = reader_need(content->reader, &content->reader->stream, n * (sizeof(*g.order) + sizeof(*g.to)));
	if (r < 0)
		return r;
	g.order = content->reader->stream.bytes;
	g.to = (uint8_t **)(g.order + n);
	for (size_t i = 0; i < n; i++)
		g.order[i] = &pieces[i];
	qsort(g.order, n, sizeof(*g.order), by_offset);
	for (size_t i = 0; i < n; i++) {
		g.order[i]->bytes = g.to[i] = room;
		room += g.order[i]->size;
	}
	r = inflate_stream(content, gather, &g);
	if (r == 0)
		return content_bad(content, g.at, "it ends, and says to be %llu bytes",
				   (unsigned long long)content->size);
	return MIN(r, 0);
}

static int plain_pieces(struct content *content, struct piece *pieces, size_t n)
{
	uint8_t *room = content->reader->metadata.bytes;

	for (size_t i = 0; i < n; i++) {
		if (reader_get(content->reader, &content->stored, pieces[i].offset, room, pieces[i].size) < 0)
			return content_bad(content, pieces[i].offset, "%llu bytes of an image: %s",
					   (unsigned long long)pieces[i].size, reader_why(content->reader));
		pieces[i].bytes = room;
		room += pieces[i].size;
	}
	return 0;
}

int content_pieces(struct content *content, struct piece *pieces, size_t n)
{
	uint64_t total = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		if (pieces[i].offset > content->size || pieces[i].size > content->size - pieces[i].offset)
			return content_bad(content, pieces[i].offset,
					   "a section of %llu bytes in an image of %llu",
					   (unsigned long long)pieces[i].size,
					   (unsigned long long)content->size);
		if (content->whole)
			pieces[i].bytes = content->whole + pieces[i].offset;
		if (__builtin_add_overflow(total, pieces[i].size, &total))
			total = UINT64_MAX;
	}
	if (total / OVERLAP_MAX > content->size)
		return content_bad(
			content, 0,
			"its sections are %llu bytes of an image of %llu: they lie over one another",
			(unsigned long long)total, (unsigned long long)content->size);
	if (content->whole)
		return 0;
	if (total > content->reader->limits.metadata_bytes)
		return content_bad(content, 0,
				   "its names and attributes are %llu bytes, above the limit of %zu",
				   (unsigned long long)total, content->reader->limits.metadata_bytes);
	r = reader_need(content->reader, &content->reader->metadata, MAX((size_t)total, (size_t)1));
	if (r < 0)
		return r;
	return content->compression == CUBIN_PLAIN ? plain_pieces(content, pieces, n) :
						     stream_pieces(content, pieces, n);
}

/*
 * Where the section headers are, and how many bytes they have. @first of them has their number where the
 * header has 0; NULL: it is not known yet.
 */
static int section_headers(struct content *content, const Elf64_Ehdr *header, const Elf64_Shdr *first,
			   struct range *ret_range)
{
	struct range range = { header->e_shoff, (uint64_t)header->e_shnum * sizeof(*first) };

	if (header->e_shnum == 0 && first && header->e_shoff != 0 &&
	    __builtin_mul_overflow(first->sh_size, sizeof(*first), &range.size))
		range.size = UINT64_MAX;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != CUBIN_MACHINE ||
	    header->e_ident[EI_CLASS] != ELFCLASS64)
		return content_bad(content, 0, "no ELF image of a CUDA device");
	if (range.size && header->e_shentsize != sizeof(*first))
		return content_bad(content, 0, "section headers of %u bytes", header->e_shentsize);
	if (range.size > content->reader->limits.metadata_bytes)
		return content_bad(content, header->e_shoff,
				   "%llu bytes of section headers, above the limit of %zu",
				   (unsigned long long)range.size, content->reader->limits.metadata_bytes);
	if (range.size && (range.offset > content->size || range.size > content->size - range.offset))
		return content_bad(content, header->e_shoff, "section headers beyond the image's %llu bytes",
				   (unsigned long long)content->size);
	*ret_range = range;
	return 0;
}

/* Streams once: the ELF header contains the position of the section headers. */
struct find {
	struct content *content;
	Elf64_Ehdr header;
	struct range sections;
	uint64_t at;
};

/* Copies the part of these bytes, which are at @at, that is in @range, to its place in @to. */
static void copy_overlap(uint64_t at, const uint8_t *bytes, size_t n, const struct range *range, uint8_t *to)
{
	uint64_t begin = MAX(range->offset, at), end = MIN(range->offset + range->size, at + n);

	if (begin < end)
		memcpy(to + (begin - range->offset), bytes + (begin - at), end - begin);
}

static int find_headers(const uint8_t *bytes, size_t n, void *userdata)
{
	static const struct range header = { 0, sizeof(Elf64_Ehdr) };
	struct find *find = userdata;
	struct buffer *buffer = &find->content->reader->headers;
	int r;

	copy_overlap(find->at, bytes, n, &header, (uint8_t *)&find->header);
	if (find->at < header.size && find->at + n >= header.size) {
		r = section_headers(find->content, &find->header, NULL, &find->sections);
		if (r < 0)
			return r;
		/* Their number is in the first one, so the range extends to the end. */
		if (find->header.e_shnum == 0 && find->header.e_shoff != 0 &&
		    find->header.e_shoff < find->content->size)
			find->sections.size = MIN(find->content->size - find->header.e_shoff,
						  find->content->reader->limits.metadata_bytes);
		r = reader_need(find->content->reader, buffer, find->sections.size + 1);
		if (r < 0)
			return r;
	}
	if (find->at + n >= header.size)
		copy_overlap(find->at, bytes, n, &find->sections, buffer->bytes);
	find->at += n;
	return find->at >= header.size && find->at >= find->sections.offset + find->sections.size;
}

static int stream_headers(struct content *content, Elf64_Ehdr *ret_header, struct range *ret_range)
{
	struct find find = { .content = content };
	Elf64_Shdr first;
	int r;

	r = inflate_stream(content, find_headers, &find);
	if (r == 0)
		return content_bad(content, find.at, "it ends, and says to be %llu bytes",
				   (unsigned long long)content->size);
	if (r < 0)
		return r;
	*ret_header = find.header;
	if (find.sections.size < sizeof(first)) {
		*ret_range = (struct range){ 0 };
		return 0;
	}
	memcpy(&first, content->reader->headers.bytes, sizeof(first));
	r = section_headers(content, &find.header, &first, ret_range);
	if (r == 0 && ret_range->size > find.sections.size)
		return content_bad(content, find.sections.offset, "section headers beyond the image's end");
	return r;
}

/* For an image that is decompressed whole, or not compressed. */
static int get(struct content *content, uint64_t offset, void *buf, size_t n)
{
	if (!content->whole) {
		if (reader_get(content->reader, &content->stored, offset, buf, n) < 0)
			return content_bad(content, offset, "headers of an image: %s",
					   reader_why(content->reader));
		return 0;
	}
	if (n > content->size || offset > content->size - n)
		return content_bad(content, offset, "it ends in the middle of its headers");
	memcpy(buf, content->whole + offset, n);
	return 0;
}

static int direct_headers(struct content *content, Elf64_Ehdr *ret_header, struct range *ret_range)
{
	Elf64_Shdr first;
	int r = get(content, 0, ret_header, sizeof(*ret_header));

	if (r == 0 && ret_header->e_shnum == 0 && ret_header->e_shoff != 0)
		r = get(content, ret_header->e_shoff, &first, sizeof(first));
	if (r == 0)
		r = section_headers(content, ret_header, &first, ret_range);
	if (r == 0)
		r = reader_need(content->reader, &content->reader->headers, ret_range->size + 1);
	if (r == 0)
		r = get(content, ret_range->offset, content->reader->headers.bytes, ret_range->size);
	return r;
}

int content_headers(struct content *content, Elf64_Ehdr *ret_header, const Elf64_Shdr **ret_sections,
		    size_t *ret_n)
{
	struct range range;
	int r;

	r = content->whole || content->compression == CUBIN_PLAIN ?
		    direct_headers(content, ret_header, &range) :
		    stream_headers(content, ret_header, &range);
	if (r < 0)
		return r;
	*ret_sections = content->reader->headers.bytes;
	*ret_n = range.size / sizeof(Elf64_Shdr);
	return 0;
}
