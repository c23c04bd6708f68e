// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/past.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum { LEVEL = 1 };

struct packed {
	void *data;
	size_t size, text_size;
	int64_t mono_ns, real_ns;
};

struct past {
	uint32_t first, n; /* of the ring */
	size_t bytes;
	ZSTD_CCtx *context;
	struct packed list[PAST_SAMPLES];
};

int past_new(struct past **ret_past)
{
	struct past *past = calloc(1, sizeof(*past));

	if (!past)
		return -ENOMEM;
	past->context = ZSTD_createCCtx();
	if (!past->context) {
		free(past);
		return -ENOMEM;
	}
	*ret_past = past;
	return 0;
}

static void drop_oldest(struct past *past)
{
	struct packed *oldest = &past->list[past->first];

	past->bytes -= oldest->size;
	free(oldest->data);
	*oldest = (struct packed){ 0 };
	past->first = (past->first + 1) % PAST_SAMPLES;
	past->n--;
}

void past_free(struct past *past)
{
	if (!past)
		return;
	while (past->n > 0)
		drop_oldest(past);
	ZSTD_freeCCtx(past->context);
	free(past);
}

void past_add(struct past *past, const struct sample *sample)
{
	size_t room = ZSTD_compressBound(sample->text.len), size;
	_cleanup_free_ void *data = sample->text.len > 0 ? malloc(room) : NULL;
	struct packed *to;
	void *fitting;

	if (!data)
		return;
	size = ZSTD_compressCCtx(past->context, data, room, sample->text.data, sample->text.len, LEVEL);
	if (ZSTD_isError(size) || size > PAST_BYTES / 2)
		return;
	while (past->n > 0 && (past->n == PAST_SAMPLES || past->bytes + size > PAST_BYTES))
		drop_oldest(past);
	fitting = realloc(data, size);
	if (!fitting)
		return;
	data = NULL;
	to = &past->list[(past->first + past->n++) % PAST_SAMPLES];
	*to = (struct packed){ fitting, size, sample->text.len, sample->mono_ns, sample->real_ns };
	past->bytes += size;
}

uint32_t past_count(const struct past *past)
{
	return past->n;
}

int past_get(const struct past *past, uint32_t back, struct sample **ret_sample)
{
	const struct packed *packed;
	_cleanup_free_ char *text = NULL;
	int r;

	if (back >= past->n)
		return -ENOENT;
	packed = &past->list[(past->first + past->n - 1 - back) % PAST_SAMPLES];
	text = malloc(packed->text_size);
	if (!text)
		return -ENOMEM;
	if (ZSTD_decompress(text, packed->text_size, packed->data, packed->size) != packed->text_size)
		return -EBADMSG;
	r = sample_of_text(text, packed->text_size, ret_sample);
	if (r < 0)
		return r;
	(*ret_sample)->mono_ns = packed->mono_ns;
	(*ret_sample)->real_ns = packed->real_ns;
	return 0;
}
