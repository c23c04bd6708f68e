// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "file.h"
#include "timeline/read.h"

static void check_text(const struct timeline_reader *reader, uint32_t text)
{
	if (!text_is_printable(timeline_reader_text(reader, text)))
		abort();
}

/* Every event is one that timeline_add() takes, on a track that ends above. */
static void check(const struct timeline_reader *reader, const struct timeline_event *event)
{
	unsigned above = 0;

	if (event->type > TIMELINE_VALUE || event->category >= TIMELINE_CATEGORIES ||
	    event->args_n > TIMELINE_ARGS ||
	    (event->type == TIMELINE_SLICE && event->end_ns < event->begin_ns))
		abort();
	check_text(reader, event->name);
	for (unsigned i = 0; i < event->args_n; i++) {
		check_text(reader, event->args[i].key);
		if (event->args[i].type == TIMELINE_TEXT)
			check_text(reader, (uint32_t)event->args[i].value);
	}
	for (uint32_t track = event->track; track != TIMELINE_NONE;
	     track = timeline_reader_track(reader, track)->parent) {
		check_text(reader, timeline_reader_track(reader, track)->name);
		if (above++ > TIMELINE_TRACKS_MAX)
			abort();
	}
}

int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_(timeline_reader_freep) struct timeline_reader *reader = NULL;
	const struct timeline_read *read;
	struct timeline_event event;
	uint64_t told = 0;
	int fd = fuzz_file(data, size), r;

	if (lseek(fd, 0, SEEK_SET) < 0 || timeline_reader_new(fd, &reader) < 0)
		abort();
	for (; (r = timeline_read_next(reader, &event)) > 0; told++)
		check(reader, &event);
	if (r != 0 && r != -EBADMSG)
		abort();
	read = timeline_read_status(reader);
	if ((r == -EBADMSG) != (read->reason != NULL) || read->events != told || read->bytes > size ||
	    read->offset > size || read->cut_bytes > size || (r == 0 && read->bytes != size))
		abort();
	return 0;
}
