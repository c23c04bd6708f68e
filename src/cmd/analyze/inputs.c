// SPDX-License-Identifier: Apache-2.0
#include "cmd/analyze/analyze.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "view/table/table.h"

_Static_assert((int)OPERANDS_MAX <= (int)OFFSET_NODES_MAX, "each file is a node");

static void say_of(const struct analyze_input *input, const char *text)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, input->path);
	fprintf(stderr, "gpusonde analyze: %s: %s\n", clean.data, text);
	strbuf_done(&clean);
}

/* "run/node7.pftrace" is node7, where there are several. */
static uint32_t node_named(struct analyze_inputs *inputs, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *end = strrchr(base, '.');
	char name[ANALYSIS_TEXT_MAX];
	uint32_t node = 0;

	if (inputs->n == 1)
		return 0;
	snprintf(name, sizeof(name), "%.*s", end ? (int)(end - base) : (int)strlen(base), base);
	analysis_text(inputs->analysis, name, &node);
	return node;
}

bool analyze_open(struct analyze_inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->n; i++) {
		struct analyze_input *input = &inputs->list[i];
		int r = analyze_file_new(input->path, inputs->analysis, node_named(inputs, input->path),
					 &input->file);

		if (r < 0) {
			say_of(input, r == -ENOTSUP ? "it is no regular file" : strerror(-r));
			return false;
		}
	}
	return true;
}

void analyze_close(struct analyze_inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->n; i++)
		analyze_file_free(TAKE_PTR(inputs->list[i].file));
}

/* False: it cannot be read, which is said. */
static bool next_of(struct analyze_input *input)
{
	const struct timeline_read *read = analyze_file_status(input->file);
	int r = analyze_file_next(input->file, &input->next);
	char text[256];

	input->has_next = r > 0;
	if (r >= 0)
		return true;
	if (r == -EBADMSG && read->in_block)
		snprintf(text, sizeof(text), "refused at byte %" PRIu64 ", %" PRIu64 " of its block: %s",
			 read->offset, read->in_block, read->reason);
	else if (r == -EBADMSG)
		snprintf(text, sizeof(text), "refused at byte %" PRIu64 ": %s", read->offset, read->reason);
	else
		snprintf(text, sizeof(text), "cannot be read: %s", strerror(-r));
	say_of(input, text);
	return false;
}

/* ---- clocks ---- */

static bool read_arrivals(struct analyze_input *input, uint32_t node, struct offsets *offsets)
{
	for (;;) {
		if (!next_of(input))
			return false;
		if (!input->has_next)
			return true;
		if (input->next.kind == ANALYSIS_COLLECTIVE && input->next.communicator &&
		    input->next.sequence)
			offsets_add(offsets, node, input->next.communicator, input->next.sequence,
				    input->next.begin_ns);
	}
}

static void say_offsets(const struct analyze_inputs *inputs)
{
	char text[200];

	for (uint32_t i = 1; i < inputs->n; i++) {
		const struct node_offset *offset = &inputs->list[i].offset;

		if (offset->common)
			snprintf(text, sizeof(text),
				 "its clock is set by %+.6f s, as the first file's, by %" PRIu32
				 " collectives in common; what its ranks are always late by is in it",
				 (double)offset->offset_ns / 1e9, offset->common);
		else
			snprintf(text, sizeof(text),
				 "it has no collectives in common with the other files: its "
				 "times are its own");
		say_of(&inputs->list[i], text);
	}
}

bool analyze_align(struct analyze_inputs *inputs)
{
	_cleanup_(offsets_freep) struct offsets *offsets = offsets_new(inputs->n);
	struct node_offset found[OPERANDS_MAX];

	if (!offsets) {
		fprintf(stderr, "gpusonde analyze: %s\n", strerror(ENOMEM));
		return false;
	}
	for (uint32_t i = 0; i < inputs->n; i++)
		if (!read_arrivals(&inputs->list[i], i, offsets))
			return false;
	if (offsets_solve(offsets, found) < 0) {
		fprintf(stderr, "gpusonde analyze: %s\n", strerror(ENOMEM));
		return false;
	}
	for (uint32_t i = 0; i < inputs->n; i++)
		inputs->list[i].offset = found[i];
	say_offsets(inputs);
	analyze_close(inputs);
	return analyze_open(inputs);
}

/* ---- events ---- */

static bool advance(struct analyze_input *input)
{
	if (!next_of(input))
		return false;
	if (input->has_next) {
		input->next.begin_ns += (uint64_t)input->offset.offset_ns;
		input->next.end_ns += (uint64_t)input->offset.offset_ns;
	}
	return true;
}

/* NULL: all are at their ends. */
static struct analyze_input *earliest(struct analyze_inputs *inputs)
{
	struct analyze_input *first = NULL;

	for (uint32_t i = 0; i < inputs->n; i++) {
		struct analyze_input *input = &inputs->list[i];

		if (input->has_next && (!first || input->next.end_ns < first->next.end_ns))
			first = input;
	}
	return first;
}

static void say_missing(const struct analyze_input *input)
{
	const struct timeline_read *read = analyze_file_status(input->file);
	uint64_t lost = analyze_file_lost(input->file);
	char text[160];

	if (read->cut_bytes) {
		snprintf(text, sizeof(text),
			 "INCOMPLETE: it was cut while it was written, %" PRIu64
			 " bytes into its last block: it was read up to there",
			 read->cut_bytes);
		say_of(input, text);
	}
	if (lost) {
		snprintf(text, sizeof(text), "INCOMPLETE: %" PRIu64 " events were lost when it was recorded",
			 lost);
		say_of(input, text);
	}
	if (read->left_out || read->unended) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " events or arguments are not understood, %" PRIu64
			 " slices have no end: they are left out",
			 read->left_out, read->unended);
		say_of(input, text);
	}
}

bool analyze_read(struct analyze_inputs *inputs)
{
	struct analyze_input *input;

	for (uint32_t i = 0; i < inputs->n; i++)
		if (!advance(&inputs->list[i]))
			return false;
	while ((input = earliest(inputs))) {
		/* What is refused is counted. */
		analysis_add(inputs->analysis, &input->next);
		if (!advance(input))
			return false;
	}
	analysis_finish(inputs->analysis);
	for (uint32_t i = 0; i < inputs->n; i++)
		say_missing(&inputs->list[i]);
	return true;
}
