// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "cubin/arch.h"

static struct cubin_image image(enum cubin_kind kind, const char *arch)
{
	struct cubin_image i = { .kind = kind };

	assert_int_equal(kernel_arch_parse(arch, &i.arch), 0);
	return i;
}

/*
 * What nvlink 13.0 takes of each architecture's code for the device, but for those that it does not know any
 * more.
 */
static void machine_code(void **state)
{
	static const struct {
		uint16_t sm;
		const char *taken; /* of all, with a space around each */
	} rows[] = {
		{ 50, " 50 " },
		{ 52, " 50 52 " },
		{ 53, " 53 " },
		{ 61, " 60 61 " },
		{ 62, " 62 " },
		{ 70, " 70 " },
		{ 72, " 72 " },
		{ 75, " 70 75 " },
		{ 80, " 80 " },
		{ 86, " 80 86 " },
		{ 87, " 87 " },
		{ 88, " 88 " },
		{ 89, " 80 86 89 " },
		{ 90, " 90 90a " },
		{ 100, " 100 100a 100f " },
		{ 103, " 100 100f 103 103a 103f " },
		{ 110, " 110 110a 110f " },
		{ 120, " 120 120a 120f " },
		{ 121, " 120 120f 121 121a 121f " },
		{ 130, " " },
		{ 0, " " },
	};
	static const char *const all[] = { "50",   "52",   "53",   "60",   "61",   "62",   "70",  "72",
					   "75",   "80",   "86",   "87",   "88",   "89",   "90",  "90a",
					   "100",  "100a", "100f", "103",  "103a", "103f", "110", "110a",
					   "110f", "120",  "120a", "120f", "121",  "121a", "121f" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(all); j++) {
			struct cubin_image code = image(CUBIN_ELF, all[j]);
			char word[16];

			snprintf(word, sizeof(word), " %s ", all[j]);
			if ((cubin_suits(&code, rows[i].sm) > 0) != (strstr(rows[i].taken, word) != NULL))
				fail_msg("sm_%u and code for sm_%s", rows[i].sm, all[j]);
		}
	}
}

static void ptx(void **state)
{
	static const struct {
		const char *arch;
		uint16_t sm;
		bool taken;
	} rows[] = {
		{ "compute_75", 75, true },     { "compute_75", 90, true },
		{ "compute_75", 120, true },    { "compute_75", 70, false },
		{ "compute_80", 87, true },     { "compute_90", 89, false },
		{ "compute_90", 100, true },    { "compute_90a", 90, true },
		{ "compute_90a", 100, false },  { "compute_90a", 89, false },
		{ "compute_100f", 100, true },  { "compute_100f", 103, true },
		{ "compute_100f", 110, false }, { "compute_100f", 120, false },
		{ "compute_100", 120, true },   { "compute_103f", 100, false },
		{ "compute_120f", 121, true },  { "compute_120a", 121, false },
		{ "compute_110f", 110, true },  { "compute_110", 120, true },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cubin_image code = image(CUBIN_PTX, rows[i].arch);

		if ((cubin_suits(&code, rows[i].sm) > 0) != rows[i].taken)
			fail_msg("sm_%u and %s", rows[i].sm, rows[i].arch);
	}
}

/* Each before the next. */
static void the_best_comes_first(void **state)
{
	static const struct {
		uint16_t sm;
		struct {
			enum cubin_kind kind;
			const char *arch;
		} order[6];
	} rows[] = {
		{ 89,
		  { { CUBIN_ELF, "89" },
		    { CUBIN_ELF, "86" },
		    { CUBIN_ELF, "80" },
		    { CUBIN_PTX, "89" },
		    { CUBIN_PTX, "75" } } },
		{ 90,
		  { { CUBIN_ELF, "90a" },
		    { CUBIN_ELF, "90" },
		    { CUBIN_PTX, "90a" },
		    { CUBIN_PTX, "90" },
		    { CUBIN_PTX, "89" } } },
		{ 103,
		  { { CUBIN_ELF, "103a" },
		    { CUBIN_ELF, "103f" },
		    { CUBIN_ELF, "103" },
		    { CUBIN_ELF, "100f" },
		    { CUBIN_ELF, "100" },
		    { CUBIN_PTX, "103" } } },
		{ 110,
		  { { CUBIN_ELF, "110" },
		    { CUBIN_PTX, "110f" },
		    { CUBIN_PTX, "103" },
		    { CUBIN_PTX, "100" } } },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		for (unsigned j = 0; j + 1 < ARRAY_SIZE(rows[i].order) && rows[i].order[j + 1].arch; j++) {
			struct cubin_image one = image(rows[i].order[j].kind, rows[i].order[j].arch);
			struct cubin_image other =
				image(rows[i].order[j + 1].kind, rows[i].order[j + 1].arch);

			if (cubin_suits(&one, rows[i].sm) <= cubin_suits(&other, rows[i].sm))
				fail_msg("sm_%u: %s before %s", rows[i].sm, rows[i].order[j].arch,
					 rows[i].order[j + 1].arch);
		}
	}
}

static void debug_code_only_where_there_is_no_other(void **state)
{
	struct cubin_image plain = image(CUBIN_ELF, "86"), debug = plain, older = image(CUBIN_ELF, "80");

	(void)state;
	debug.debug = true;
	assert_true(cubin_suits(&plain, 86) > cubin_suits(&debug, 86));
	assert_true(cubin_suits(&debug, 86) > cubin_suits(&older, 86));
}

static void what_is_neither_suits_nobody(void **state)
{
	struct cubin_image other = image(CUBIN_OTHER, "90"), unknown = { .kind = CUBIN_ELF };

	(void)state;
	assert_int_equal(cubin_suits(&other, 90), 0);
	assert_int_equal(cubin_suits(&unknown, 90), 0);
	assert_int_equal(cubin_suits(&unknown, 0), 0);
	unknown.kind = CUBIN_PTX;
	assert_int_equal(cubin_suits(&unknown, 90), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_code),
		cmocka_unit_test(ptx),
		cmocka_unit_test(the_best_comes_first),
		cmocka_unit_test(debug_code_only_where_there_is_no_other),
		cmocka_unit_test(what_is_neither_suits_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
