// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helper/helper.h"
#include "symbolize/wire.h"

static const struct symbolizer_question question = {
	.id = 3,
	.process = { 11, 22 },
	.incarnation = 33,
	.function = 44,
	.sm = 90,
	.symbol = "_Z1fv",
	.image = 55,
	.path = "",
	.seq = 66,
};
static const struct kernel kernel = {
	.symbol = "_Z1fv",
	.name = "f()",
	.brief = "f",
	.file = "/lib\nx\xff",
	.offset = 77,
	.source = KERNEL_SOURCE_REGISTERED,
	.arch = { .sm = 90, .variant = 'a' },
	.figures = { 5, -1 },
};

/* A copy of its exact size, so that a sanitizer sees what is read beyond it. */
static void *copy_of(const struct strbuf *message, size_t n)
{
	void *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	memcpy(copy, message->data, n);
	return copy;
}

static int take_kernel(const struct strbuf *message, size_t n)
{
	_cleanup_free_ void *copy = copy_of(message, n);
	struct kernel taken;
	uint64_t id;

	return wire_take_kernel(copy, n, &id, &taken);
}

static void a_question_arrives(_unused_ void **state)
{
	struct symbolizer_question taken;
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(wire_put_question(&out, &question, 99), 0);
	for (size_t n = 0; n < out.len; n++) {
		_cleanup_free_ void *cut = copy_of(&out, n);

		assert_int_equal(wire_take_question(cut, n, &taken), -EBADMSG);
	}
	assert_int_equal(wire_take_question(out.data, out.len, &taken), 0);
	assert_int_equal(taken.id, 99);
	assert_int_equal(taken.process.start_ticks, 22);
	assert_int_equal(taken.image, 55);
	assert_string_equal(taken.symbol, "_Z1fv");
	assert_string_equal(taken.path, "");
	strbuf_done(&out);
}

static void a_kernel_arrives(_unused_ void **state)
{
	struct kernel taken;
	struct strbuf out;
	uint64_t id;

	strbuf_init(&out, 0);
	assert_int_equal(wire_put_kernel(&out, &kernel, 99), 0);
	for (size_t n = 0; n < out.len; n++)
		assert_int_equal(take_kernel(&out, n), -EBADMSG);
	assert_int_equal(wire_take_kernel(out.data, out.len, &id, &taken), 0);
	assert_int_equal(id, 99);
	assert_int_equal(taken.source, KERNEL_SOURCE_REGISTERED);
	assert_int_equal(taken.arch.variant, 'a');
	assert_int_equal(taken.figures[0], 5);
	assert_string_equal(taken.name, "f()");
	assert_string_equal(taken.file, "/lib?x?"); /* it is shown */
	strbuf_done(&out);
}

static void what_a_helper_makes_up_is_refused(_unused_ void **state)
{
	struct strbuf out;
	struct wire_kernel *fixed, good;

	strbuf_init(&out, 0);
	assert_int_equal(wire_put_kernel(&out, &kernel, 99), 0);
	fixed = (struct wire_kernel *)(void *)out.data;
	good = *fixed;
	assert_int_equal(take_kernel(&out, out.len), 0);
#define REFUSED(member_, value_)                                        \
	do {                                                            \
		fixed->member_ = (value_);                              \
		assert_int_equal(take_kernel(&out, out.len), -EBADMSG); \
		*fixed = good;                                          \
	} while (0)
	REFUSED(source, KERNEL_SOURCES);
	REFUSED(sm, 10000);
	REFUSED(variant, 'z');
	REFUSED(jit, 2);
	REFUSED(figures[1], -2);
	REFUSED(symbol_n, good.symbol_n - 1);
	REFUSED(symbol_n, 0);
	REFUSED(name_n, UINT32_MAX);
	REFUSED(file_n, good.file_n + 1);
	out.data[out.len - 1] = 'x'; /* a text without an end */
	assert_int_equal(take_kernel(&out, out.len), -EBADMSG);
	strbuf_done(&out);
}

static void what_does_not_fit_is_refused(_unused_ void **state)
{
	_cleanup_free_ char *text = malloc(HELPER_MESSAGE_MAX + 1);
	struct symbolizer_question large = question;
	struct strbuf out;

	assert_non_null(text);
	memset(text, 'x', HELPER_MESSAGE_MAX);
	text[HELPER_MESSAGE_MAX] = '\0';
	large.symbol = text;
	strbuf_init(&out, 0);
	assert_int_equal(wire_put_question(&out, &large, 1), -EMSGSIZE);
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_arrives),
		cmocka_unit_test(a_kernel_arrives),
		cmocka_unit_test(what_a_helper_makes_up_is_refused),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
