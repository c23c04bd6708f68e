// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kubelet/elements.h"

static char seen[256]; /* the elements, each ended by '|' */
static size_t longest;
static int refuse; /* what the callback returns */

static int on_element(const uint8_t *data, size_t n, void *userdata)
{
	assert_ptr_equal(userdata, seen);
	if (n > longest)
		longest = n;
	if (n < 16) {
		strncat(seen, (const char *)data, n);
		strcat(seen, "|");
	}
	return refuse;
}

static struct elements fresh(void)
{
	seen[0] = '\0';
	longest = 0;
	refuse = 0;
	return (struct elements){ .element = on_element, .userdata = seen };
}

/* In pieces of so many bytes. */
static int feed(struct elements *e, const char *data, size_t n, size_t piece)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < n; at += piece)
		r = elements_feed(e, (const uint8_t *)data + at, n - at < piece ? n - at : piece);
	return r;
}

/*
 * field 1 "ab"; field 2 varint; field 1 ""; field 3 of 8 bytes; field 4 of 4; field 200 "skip"; field 1 "c"
 */
#define LIST           \
	"\x0a\x02"     \
	"ab"           \
	"\x10\x96\x01" \
	"\x0a\x00"     \
	"\x19"         \
	"12345678"     \
	"\x25"         \
	"1234"         \
	"\xc2\x0c\x04" \
	"skip"         \
	"\x0a\x01"     \
	"c"

static void takes_elements_in_pieces(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(LIST); piece++) {
		struct elements e = fresh();

		assert_int_equal(feed(&e, LIST, sizeof(LIST) - 1, piece), 0);
		assert_int_equal(elements_end(&e), 0);
		assert_string_equal(seen, "ab||c|");
		assert_int_equal(e.left_out, 0);
		elements_done(&e);
	}
}

static void knows_that_it_is_cut(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(LIST) - 1; n++) {
		struct elements e = fresh();
		bool between = n == 0 || n == 4 || n == 7 || n == 9 || n == 18 || n == 23 || n == 30;

		assert_int_equal(feed(&e, LIST, n, n ? n : 1), 0);
		assert_int_equal(elements_end(&e), between ? 0 : -EBADMSG);
		elements_done(&e);
	}
}

static void refuses(const char *data, size_t n)
{
	struct elements e = fresh();

	assert_int_equal(feed(&e, data, n, 1), -EBADMSG);
	elements_done(&e);
}

static void refuses_what_is_no_message(void **state)
{
	(void)state;
	refuses("\x0b", 1); /* a group */
	refuses("\x0f", 1); /* a wire type that is none */
	refuses("\x02", 1); /* field 0 */
	refuses("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); /* a varint of 11 bytes */
	refuses("\x0a\xff\xff\xff\xff\x0f", 6); /* 4 GiB */
	refuses("\xfa\xff\xff\xff\xff\x01", 6); /* a field number beyond 2^29 */
}

static void passes_refusal_on(void **state)
{
	struct elements e = fresh();

	(void)state;
	refuse = -ECANCELED;
	assert_int_equal(feed(&e, LIST, sizeof(LIST) - 1, 1), -ECANCELED);
	elements_done(&e);
}

static void leaves_long_ones_out(void **state)
{
	const size_t n = ELEMENT_MAX + 1;
	char *zeros = calloc(1, n);
	struct elements e = fresh();

	(void)state;
	assert_int_equal(feed(&e, "\x0a\x81\x80\x80\x01", 5, 5), 0);
	assert_int_equal(feed(&e, zeros, n, 65536), 0);
	assert_int_equal(feed(&e, "\x0a\x80\x80\x80\x01", 5, 5), 0);
	assert_int_equal(feed(&e, zeros, n - 1, 65536), 0);
	assert_int_equal(feed(&e,
			      "\x0a\x01"
			      "c",
			      3, 3),
			 0);
	assert_int_equal(elements_end(&e), 0);
	assert_string_equal(seen, "c|");
	assert_int_equal(longest, ELEMENT_MAX);
	assert_int_equal(e.left_out, 1);
	elements_done(&e);
	free(zeros);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_elements_in_pieces),   cmocka_unit_test(knows_that_it_is_cut),
		cmocka_unit_test(refuses_what_is_no_message), cmocka_unit_test(passes_refusal_on),
		cmocka_unit_test(leaves_long_ones_out),
	};

	return cmocka_run_group_tests_name("elements", tests, NULL, NULL);
}
