// SPDX-License-Identifier: Apache-2.0
#include "view/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "view/stacks_private.h"

const struct stack_weight_info stack_weight_infos[STACK_WEIGHTS] = {
#define STACK_WEIGHT(id_, name_, unit_, title_) [STACK_##id_] = { name_, unit_, title_ },
#include "view/stack_weights.def"
};

bool stack_weight_parse(const char *text, enum stack_weight *ret_weight)
{
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		if (strcmp(text, stack_weight_infos[i].name) == 0) {
			*ret_weight = (enum stack_weight)i;
			return true;
		}
	return false;
}

const char *stack_weight_name(enum stack_weight weight)
{
	return stack_weight_infos[weight].name;
}

bool stack_weight_is_known(const struct stack_page *page, enum stack_weight weight)
{
	return weight != STACK_GPU_TIME || page->has_gpu_time;
}

/* A name's own semicolons and line ends would be separators. */
static void add_folded(const char *text, struct strbuf *out)
{
	for (; *text; text++)
		strbuf_addc(out, *text == ';' || *text == '\n' ? ':' : *text);
}

static void add_place(const struct stack_place *place, struct strbuf *out)
{
	add_folded(place->name, out);
	if (!place->file[0])
		return;
	strbuf_adds(out, " (");
	add_folded(place->file, out);
	if (place->line)
		strbuf_addf(out, ":%" PRIu32, place->line);
	strbuf_addc(out, ')');
}

int view_stacks_folded(const struct stack_page *page, enum stack_weight weight, struct strbuf *out)
{
	for (size_t i = 0; i < page->rows_n; i++) {
		const struct stack_row *row = &page->rows[i];

		if (llround(row->weights[weight]) <= 0)
			continue;
		add_folded(row->process, out);
		for (uint32_t p = row->n; p > 0; p--) {
			strbuf_addc(out, ';');
			add_place(&page->places[row->places[p - 1]], out);
		}
		strbuf_addc(out, ';');
		add_folded(row->call, out);
		strbuf_addf(out, " %lld\n", llround(row->weights[weight]));
	}
	return out->failed ? -ENOMEM : 0;
}
