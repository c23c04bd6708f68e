// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as what "gpusonde top" reads: as an agent's document ("{" first), drawn on every tab; else as its
 * settings, and as a filter. What was kept can be read again.
 */
#include "fuzz.h"

#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "cmd/top/filter.h"
#include "cmd/top/settings.h"

enum { ROWS = 24, COLUMNS = 80 };

static void draw_all(struct top *top)
{
	struct canvas canvas = { 0 };

	if (canvas_resize(&canvas, ROWS, COLUMNS) < 0)
		return;
	for (unsigned i = 0; i < TABS; i++) {
		top->tab = (enum tab)i;
		top->bars = i & 1 ? top->bars : !top->bars;
		top_make_rows(top);
		draw_screen(top, &canvas);
	}
	canvas_done(&canvas);
}

static void document(struct top *top, const char *text, size_t size)
{
	if (trails_new(&top->trails) < 0 || past_new(&top->past) < 0)
		return;
	if (sample_of_text(text, size, &top->sample) == 0) {
		trails_add(top->trails, top->sample);
		draw_all(top);
	}
	top_done(top);
}

static void settings(struct top *top, const char *text)
{
	struct strbuf first, second;
	struct filter *filter = NULL;
	bool unknown;

	strbuf_init(&first, 0);
	strbuf_init(&second, 0);
	settings_parse(top, text);
	settings_format(top, &first);
	settings_parse(top, first.data);
	settings_format(top, &second);
	if (strcmp(first.data, second.data) != 0)
		abort();
	strbuf_done(&first);
	strbuf_done(&second);
	for (unsigned i = 0; i < TABS; i++)
		if (filter_new((enum tab)i, text, &filter, &unknown) == 0)
			filter_free(filter);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct top top = { .period_ns = NSEC_PER_SEC };
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	top_init(&top);
	if (size > 0 && data[0] == '{')
		document(&top, text, size);
	else
		settings(&top, text);
	free(text);
	return 0;
}
