// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "file.h"
#include "timeline/chrome_read.h"

static void check_text(const struct chrome_file *file, uint32_t text)
{
	if (text >= file->texts.at.n || !text_is_printable(texts_get(&file->texts, text)))
		abort();
}

/* Slices are by place, by time, and none ends after the one that it begins in. */
static void check(const struct chrome_file *file, uint32_t i)
{
	const struct chrome_slice *slice = chrome_slice_at(file, i), *before = i ? slice - 1 : NULL;

	if (slice->end_ns < slice->begin_ns || slice->place >= file->places.n)
		abort();
	check_text(file, slice->name);
	check_text(file, slice->category);
	check_text(file, chrome_place_at(file, slice->place)->process);
	check_text(file, chrome_place_at(file, slice->place)->thread);
	if (!before || before->place != slice->place)
		return;
	if (slice->begin_ns < before->begin_ns ||
	    (slice->begin_ns < before->end_ns && slice->end_ns > before->end_ns))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size), r;
	struct chrome_file file;

	if (lseek(fd, 0, SEEK_SET) < 0)
		abort();
	r = chrome_file_read(fd, &file);
	if (r < 0 && r != -EBADMSG && r != -E2BIG && r != -EFBIG)
		abort();
	for (uint32_t i = 0; r == 0 && i < file.slices.n; i++)
		check(&file, i);
	chrome_file_done(&file);
	return 0;
}
