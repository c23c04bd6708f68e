// SPDX-License-Identifier: Apache-2.0
#include "samples/write.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"

void samples_writer_init(struct samples_writer *writer)
{
	*writer = (struct samples_writer){ 0 };
	for (unsigned part = 0; part < PAGE_PARTS_N; part++)
		strbuf_init(&writer->parts[part], PAGE_BYTES_MAX);
	samples_add_text(writer, "");
}

void samples_writer_done(struct samples_writer *writer)
{
	for (unsigned part = 0; part < PAGE_PARTS_N; part++)
		strbuf_done(&writer->parts[part]);
	hashmap_done(&writer->texts);
}

static uint32_t append_to(struct samples_writer *writer, enum page_part part, const void *data, size_t size,
			  uint32_t n)
{
	uint32_t first = writer->n[part];

	strbuf_add(&writer->parts[part], data, size * n);
	writer->n[part] += n;
	return first;
}

uint32_t samples_add_text(struct samples_writer *writer, const char *text)
{
	const struct strbuf *texts = &writer->parts[PAGE_TEXTS];
	size_t n = strlen(text);
	uint64_t key = hash_bytes_secret(text, n);
	uint32_t at;

	if (hashmap_get(&writer->texts, key, &at) && at < texts->len && strcmp(texts->data + at, text) == 0)
		return at;
	at = append_to(writer, PAGE_TEXTS, text, 1, (uint32_t)n + 1);
	if (hashmap_put(&writer->texts, key, at) < 0)
		writer->failed = true;
	return at;
}

uint32_t samples_add_set(struct samples_writer *writer, const struct page_label *labels, uint32_t n)
{
	struct page_set set = { .n = n };

	set.first = append_to(writer, PAGE_LABELS, labels, sizeof(*labels), n);
	return append_to(writer, PAGE_SETS, &set, sizeof(set), 1) + 1;
}

uint32_t samples_add_histogram(struct samples_writer *writer, const struct page_histogram *histogram,
			       const struct page_bound *bounds, const uint64_t *counts)
{
	struct page_histogram added = *histogram;

	added.bounds = append_to(writer, PAGE_BOUNDS, bounds, sizeof(*bounds), added.n);
	added.counts = append_to(writer, PAGE_COUNTS, counts, sizeof(*counts), added.all);
	return append_to(writer, PAGE_HISTOGRAMS, &added, sizeof(added), 1) + 1;
}

void samples_add_family(struct samples_writer *writer, const struct page_family *family)
{
	struct page_family begun = *family;

	begun.first = writer->n[PAGE_SERIES];
	begun.n = 0;
	append_to(writer, PAGE_FAMILIES, &begun, sizeof(begun), 1);
}

void samples_add_series(struct samples_writer *writer, const struct page_series *series)
{
	struct strbuf *families = &writer->parts[PAGE_FAMILIES];
	struct page_family family;
	size_t at = families->len - sizeof(family);

	if (families->failed || families->len == 0)
		return;
	memcpy(&family, families->data + at, sizeof(family));
	family.n++;
	memcpy(families->data + at, &family, sizeof(family));
	append_to(writer, PAGE_SERIES, series, sizeof(*series), 1);
}

/* ---- the file ---- */

static int write_parts(struct samples_writer *writer, int fd, const struct page_header *header,
		       size_t *ret_bytes)
{
	static const char zeroes[8];
	size_t bytes = sizeof(*header);
	ssize_t r = write_all(fd, header, sizeof(*header));

	for (unsigned part = 0; part < PAGE_PARTS_N && r >= 0; part++) {
		const struct strbuf *data = &writer->parts[part];
		size_t gap = -bytes % 8;

		r = write_all(fd, zeroes, gap);
		if (r >= 0)
			r = write_all(fd, data->data, data->len);
		bytes += gap + data->len;
	}
	*ret_bytes = bytes;
	return r < 0 ? (int)r : 0;
}

int samples_write(struct samples_writer *writer, int64_t real_ns, uint32_t *ret_bytes)
{
	struct page_header header = { .magic = PAGE_MAGIC, .real_ns = real_ns };
	_cleanup_close_ int fd = -1;
	size_t bytes;
	int r;

	for (unsigned part = 0; part < PAGE_PARTS_N; part++)
		writer->failed |= writer->parts[part].failed;
	if (writer->failed)
		return -ENOMEM;
	memcpy(header.n, writer->n, sizeof(header.n));
	fd = memfd_create("gpusonde-samples", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_parts(writer, fd, &header, &bytes);
	if (r < 0)
		return r;
	if (bytes > PAGE_BYTES_MAX)
		return -ENOMEM;
	*ret_bytes = (uint32_t)bytes;
	return TAKE_FD(fd);
}
