// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what a program wrote of itself in Chrome's format: complete events (X) and pairs of B and E, as an
 * array or in the member traceEvents. All else is passed over. Who wrote it may be hostile: slices, places
 * and texts have limits; slices of one place come out nested in each other or apart, as a timeline wants.
 */
#pragma once

#include <stdint.h>

#include "base/row_list.h"
#include "timeline/texts.h"

enum {
	CHROME_SLICES_MAX = 1 << 20,
	CHROME_PLACES_MAX = 4096,
	CHROME_OPEN_MAX = 1 << 16, /* B without their E so far */
};

/* Where slices are: a thread, or what the program calls one. */
struct chrome_place {
	uint32_t process, thread; /* texts */
	uint32_t pid, tid; /* the same as numbers; 0: they are none */
};

struct chrome_slice {
	uint64_t begin_ns, end_ns; /* of the file's own clock */
	uint32_t place, name, category; /* index; texts */
};

struct chrome_file {
	struct texts texts;
	struct row_list places; /* struct chrome_place */
	struct row_list slices; /* struct chrome_slice, by place, outer ones first */
	int64_t base_ns; /* to be added for the wall clock; 0: the file says none */
	uint64_t left_out; /* beyond a limit, without a name or a time, B without E */
	uint64_t cut; /* slices that ended after the one that they begin in */
};

/*
 * Reads all of @fd, from where it stands; it may end anywhere. -EBADMSG: that is no JSON, or has no events;
 * -E2BIG, -EFBIG: it is nested too deeply, or has a text that is too long; -ENOMEM; an errno of read(2). To
 * be freed in any case.
 */
int chrome_file_read(int fd, struct chrome_file *file);
void chrome_file_done(struct chrome_file *file);

static inline const struct chrome_place *chrome_place_at(const struct chrome_file *file, uint32_t i)
{
	return &((const struct chrome_place *)file->places.list)[i];
}

static inline struct chrome_slice *chrome_slice_at(const struct chrome_file *file, uint32_t i)
{
	return &((struct chrome_slice *)file->slices.list)[i];
}
