// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration file: whatever it holds, values are in their bounds, and what is printed loads again
 * unchanged.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "config/options.h"
#include "config/places.h"

static void check_bounds(const struct options *options)
{
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option *o = &option_table[i];

		if (o->max && (options->v[i].number < o->min || options->v[i].number > o->max))
			abort();
	}
}

static void check_round_trip(const struct options *options, struct strbuf *errors)
{
	struct options again;
	struct place place;
	struct strbuf text;

	strbuf_init(&text, 0);
	options_print(options, &text);
	strbuf_reset(errors);
	if (options_init(&again) < 0 ||
	    options_from_yaml(&again, "printed", text.data, text.len, errors) < 0 || errors->len > 0)
		abort();
	for (unsigned i = 0; i < OPTIONS; i++)
		if (!STRV_EQ(again.v[i].text, place_of_option(options, (enum option_id)i, &place)) ||
		    again.v[i].number != options->v[i].number)
			abort();
	options_done(&again);
	strbuf_done(&text);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct options options;
	struct strbuf errors;

	strbuf_init(&errors, 1 << 20);
	if (options_init(&options) < 0 || options_from_yaml(&options, "fuzz", data, size, &errors) < 0)
		abort();
	check_bounds(&options);
	check_round_trip(&options, &errors);
	options_done(&options);
	strbuf_done(&errors);
	return 0;
}
