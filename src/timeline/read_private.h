// SPDX-License-Identifier: Apache-2.0
/* Shared by read.c (packets of a file) and read_packet.c (what they say). */
#pragma once

#include <zlib.h>

#include "timeline/proto_read.h"
#include "timeline/read.h"
#include "timeline/stacks.h"
#include "timeline/private.h"

enum {
	CLOCKS = 64, /* of all sequences, and as many of each */
	INTERNED_MAX = 2 * TIMELINE_TEXTS_MAX, /* of all sequences */
	PARENTS_MAX = 64, /* above a track */
};

struct read_clock {
	bool set, incremental;
	uint64_t multiplier, ns; /* ns: of an incremental one, now */
	uint64_t to_reference; /* to be added, modulo 2^64 */
};

struct read_sequence {
	uint32_t id;
	bool whole; /* has seen where its state begins */
	struct hashmap texts; /* and frames and stacks: numbers, by identifier and what it is of */
	struct read_clock clocks[CLOCKS];
	uint64_t default_clock, default_track; /* 0: none */
};

struct read_track {
	struct timeline_track shown;
	uint32_t open; /* innermost open slice, plus one */
};

struct open_slice {
	struct timeline_event event;
	uint32_t below; /* the one around it, or the next free one, plus one */
};

struct timeline_reader {
	struct timeline_read read;
	struct timeline_event told; /* by the newest packet */
	bool has_told;
	/* the file */
	int fd;
	uint8_t *in; /* IN_BYTES or a packet */
	size_t in_begin, in_end, in_room;
	bool at_end;
	bool in_block, whole; /* packets come out of a block; whole: it is not cut by the file's end */
	struct proto_in rest; /* of it */
	uint64_t next_offset; /* of the packet after it */
	uint8_t *block;
	size_t block_room;
	z_stream z;
	/* what packets said */
	struct texts texts;
	struct timeline_stacks stacks;
	uint32_t no_text, categories[TIMELINE_CATEGORIES]; /* numbers of texts */
	struct row_list sequences; /* struct read_sequence */
	uint64_t interned; /* texts of all sequences */
	struct read_clock clocks[CLOCKS];
	int64_t real_offset_ns;
	struct row_list tracks; /* struct read_track */
	struct hashmap track_by; /* by UUID */
	struct row_list open; /* struct open_slice */
	uint32_t open_free; /* plus one */
};

/* -EBADMSG, for this reason. */
int read_refuse(struct timeline_reader *reader, const char *reason);

/* read_packet.c */
int read_packet(struct timeline_reader *reader, struct proto_in packet);
int read_packets_init(struct timeline_reader *reader);
void read_packets_done(struct timeline_reader *reader);

/* read_stacks.c: frames and call stacks among interned data; what has no room is left out, and counted. */
int read_frame(struct timeline_reader *reader, struct read_sequence *sequence,
	       const struct proto_field *entry);
int read_callstack(struct timeline_reader *reader, struct read_sequence *sequence,
		   const struct proto_field *entry);

/* What an identifier of a sequence stands for: the number of a text, frame or stack. */
bool read_interned(const struct read_sequence *sequence, uint64_t iid, uint32_t kind, uint32_t *ret_number);
int read_intern(struct timeline_reader *reader, struct read_sequence *sequence, uint64_t iid, uint32_t kind,
		uint32_t number);
int read_malformed(struct timeline_reader *reader);

/* read.c: a deflated packet, whose packets come next. */
int read_block(struct timeline_reader *reader, const struct proto_field *deflated);
