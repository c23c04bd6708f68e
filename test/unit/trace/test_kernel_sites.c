// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>

#include "base/macro.h"
#include "trace/kernel_sites.h"
#include "tracing.h"

static void print(const struct site_rules *rules, const char *way)
{
	for (int class = 0; class < SITE_CLASSES; class ++)
		if (rules->entry_ns[class])
			print_message("# %s: %s: entry %u ns, entry and return %u ns\n", way,
				      site_class_name((enum site_class) class), rules->entry_ns[class],
				      rules->return_ns[class]);
}

/* What no kernel from 5.10 on does otherwise; the rest differs, and is what the trial is for. */
static void every_kind_is_what_this_kernel_makes_of_it(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct site_rules rules;

	assert_int_equal(kernel_sites_probe(tracing->backend, &rules), 0);
	print(&rules, attach_backend_name(tracing->backend));
	assert_int_equal(rules.by_kind[SITE_KIND_JUMP], SITE_EMULATED);
	assert_int_equal(rules.by_kind[SITE_KIND_BRANCH], SITE_EMULATED);
	assert_int_equal(rules.by_kind[SITE_KIND_OTHER], SITE_SINGLE_STEP);
#if defined(__x86_64__)
	assert_int_equal(rules.by_kind[SITE_KIND_PUSH], SITE_EMULATED);
	assert_int_equal(rules.by_kind[SITE_KIND_PUSH_EXTENDED], SITE_EMULATED);
	assert_int_equal(rules.nop_rewritten, rules.by_kind[SITE_KIND_NOP5] == SITE_OPTIMISED ||
						      rules.by_kind[SITE_KIND_NOP10] == SITE_OPTIMISED);
#endif
	assert_true(rules.entry_ns[SITE_EMULATED] > 0);
	assert_true(rules.return_ns[SITE_EMULATED] > 0);
	assert_true(rules.entry_ns[SITE_SINGLE_STEP] > 0);
	assert_int_not_equal(rules.returns, SITE_RETURNS_UNTRIED);
	assert_true((kernel_sites_no_returns(&rules) == NULL) == (rules.returns == SITE_RETURNS_SAFE));
	/* Trials are nobody's calls. */
	assert_int_equal(tracing_counters(tracing).hits, 0);
	tracing_drain(tracing);
	assert_int_equal(tracing->events_n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(every_kind_is_what_this_kernel_makes_of_it),
	};

	return cmocka_run_group_tests_name("kernel_sites", tests, NULL, NULL);
}
