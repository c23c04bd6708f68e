// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "selector/selector.h"

/* Whether @selector matches an object with the labels "key=value,key=value". */
static bool matches(const char *selector, const char *labels)
{
	_cleanup_(selector_freep) struct selector *s = NULL;
	char error[128], text[256], *at, *rest = text;

	assert_int_equal(selector_new(selector, error, sizeof(error), &s), 0);
	strcpy(text, labels);
	selector_begin(s);
	while ((at = strsep(&rest, ",")) && *at) {
		char *value = strchr(at, '=');

		*value++ = '\0';
		selector_label(s, at, value, strlen(value));
	}
	return selector_matches(s);
}

static void both_syntaxes(void **state)
{
	(void)state;
	assert_true(
		matches("app.kubernetes.io/name=dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter,x=y"));
	assert_true(matches("app.kubernetes.io/name:dcgm-exporter,x:y",
			    "app.kubernetes.io/name=dcgm-exporter,x=y"));
	assert_false(matches("a:b,x:y", "a=b"));
	assert_false(matches("a=b", "a=c"));
	assert_false(matches("a=b", ""));
	assert_true(matches(" a == b , c != d ", "a=b"));
	assert_false(matches("a=b,c!=d", "a=b,c=d"));
	assert_true(matches("a=", "a="));
}

static void sets(void **state)
{
	(void)state;
	assert_true(matches("env in (prod, dev)", "env=dev"));
	assert_false(matches("env in (prod, dev)", "env=test"));
	assert_false(matches("env in (prod, dev)", ""));
	assert_true(matches("env notin (prod)", ""));
	assert_false(matches("env notin (prod)", "env=prod"));
	assert_true(matches("gpu", "gpu="));
	assert_false(matches("gpu", "gpus=1"));
	assert_true(matches("!gpu,in=notin", "in=notin"));
	assert_false(matches("!gpu", "gpu=1"));
	assert_true(matches("index", "index=1"));
}

static void nothing_is_matched_by_nothing(void **state)
{
	(void)state;
	assert_false(matches("", "a=b"));
	assert_false(matches("  ", "a=b"));
	assert_false(selector_matches(NULL));
}

static void what_is_no_selector(void **state)
{
	static const char *const bad[] = { ",",   "a=b,",  "=b",  "a in b",   "a in (b",
					   "a b", "a=b c", "(a)", "a in (b))" };
	struct selector *s = NULL;
	char error[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		error[0] = '\0';
		assert_int_equal(selector_new(bad[i], error, sizeof(error), &s), -EINVAL);
		assert_true(error[0] != '\0');
	}
}

static void limits(void **state)
{
	char text[4096] = "", error[128];
	struct selector *s = NULL;

	(void)state;
	for (int i = 0; i < SELECTOR_MAX; i++)
		strcat(text, i ? ",a" : "a");
	assert_true(matches(text, "a=1"));
	strcat(text, ",a");
	assert_int_equal(selector_new(text, error, sizeof(error), &s), -E2BIG);
	strcpy(text, "a in (");
	for (int i = 0; i < SELECTOR_VALUES_MAX; i++)
		strcat(text, ",");
	strcat(text, ")");
	assert_int_equal(selector_new(text, error, sizeof(error), &s), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_syntaxes),
		cmocka_unit_test(sets),
		cmocka_unit_test(nothing_is_matched_by_nothing),
		cmocka_unit_test(what_is_no_selector),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
