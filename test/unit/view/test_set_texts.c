// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "view/set_texts.h"

static unsigned made;

static void write_names(struct strbuf *out, const struct label_set *set, _unused_ void *userdata)
{
	made++;
	for (uint32_t i = 0; i < set->n; i++)
		strbuf_adds(out, set->labels[i].name);
}

static void each_is_made_once(_unused_ void **state)
{
	const struct label labels[] = { { "a", "" }, { "b", "" } };
	const struct label_set sets[] = { { 1, 1, labels }, { 4000, 2, labels }, { 0, 1, &labels[1] } };
	struct set_texts texts;
	struct strbuf out;

	set_texts_init(&texts);
	strbuf_init(&out, 0);
	for (unsigned i = 0; i < 9; i++)
		set_texts_add(&texts, &sets[i % 3], write_names, NULL, &out);
	assert_string_equal(out.data, "aabbaabbaabb");
	/* One without an id is of one series only. */
	assert_int_equal(made, 2 + 3);
	assert_false(texts.text.failed);
	set_texts_done(&texts);
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
