// SPDX-License-Identifier: Apache-2.0
/*
 * Reads timelines in Perfetto's format: those that perfetto.c wrote, and track events of other programs,
 * deflated or plain. In one pass, from anything that can be read; memory has limits, whatever the file says:
 * a packet's bytes, tracks, texts, slices that are open.
 *
 * A file may end anywhere, as one does whose writer was killed: what was complete is told. What is no such
 * file is refused, with the offset and the reason; events before that place have been told by then.
 */
#pragma once

#include "timeline/timeline.h"

enum {
	TIMELINE_PACKET_MAX = 16 << 20, /* bytes, of one packet, and of what a deflated one has */
	TIMELINE_OPEN_MAX = 1 << 16, /* slices */
	TIMELINE_SEQUENCES_MAX = 64, /* of packets: each writer has its own */
};

struct timeline_reader;

struct timeline_read {
	uint64_t bytes, packets, blocks, events; /* read; blocks: deflated packets */
	uint64_t left_out; /* events, or arguments of them, that are not understood or have no time */
	uint64_t unended; /* slices that begin and do not end */
	uint64_t cut_bytes; /* the file ends within a packet, this far; 0: it does not */
	/* Of -EBADMSG: why, and where: in the file, and in the block that begins there. */
	const char *reason;
	uint64_t offset, in_block;
};

/* -ENOMEM. */
int timeline_reader_new(int fd, struct timeline_reader **ret_reader);
/* @fd stays open. */
void timeline_reader_free(struct timeline_reader *reader);
DEFINE_CLEANUP(struct timeline_reader *, timeline_reader_free, timeline_reader_freep)

/*
 * The next event, as timeline_add() takes it; slices when they end. Categories that are not ours are
 * TIMELINE_PROGRAM. 1, or 0: the end, or -EBADMSG: it is refused; what reading returned; -ENOMEM.
 */
int timeline_read_next(struct timeline_reader *reader, struct timeline_event *ret_event);
/* So far. */
const struct timeline_read *timeline_read_status(const struct timeline_reader *reader);

/* Of a text's and a track's number in an event; valid until the next event. */
const char *timeline_reader_text(const struct timeline_reader *reader, uint32_t text);
/* Of an event's stack, from the innermost (@i 0) on; false: there are no more. */
bool timeline_reader_frame(const struct timeline_reader *reader, uint32_t stack, uint32_t i,
			   struct timeline_frame *ret_frame);
/* Parents never form a circle. */
const struct timeline_track *timeline_reader_track(const struct timeline_reader *reader, uint32_t track);
/* What is to be added to an event's time for the wall clock's, by the newest that was read; 0: not known. */
int64_t timeline_reader_real_offset(const struct timeline_reader *reader);
