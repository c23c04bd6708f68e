// SPDX-License-Identifier: Apache-2.0
/* The rows of this program's own file: they are sorted, and a function that is running has one. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "unwind/private.h"

static int on_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
	(void)size;
	*(uint64_t *)userdata = info->dlpi_addr; /* the program is the first one */
	return 1;
}

static const struct unwind_rule *rule_at(const struct making *making, const struct rules *rules, uint64_t pc)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < making->rows_n && making->base + making->rows[i].pc <= pc; i++)
		found = making->rows[i].rule;
	return &rules->rules[found];
}

static void test_own_file(void **state)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct rules rules = { .rules = calloc(UNWIND_RULES, sizeof(*rules.rules)) };
	const struct unwind_rule *rule;
	struct making making;
	uint64_t bias = 0;
	uint32_t zero;
	int r;

	(void)state;
	assert_non_null(rules.rules);
	assert_int_equal(rules_add(&rules, &none, &zero), 0);
	assert_int_equal(making_begin(&making, fd), 0);
	while ((r = making_step(&making, &rules)) > 0)
		;
	assert_int_equal(r, 0);
	assert_true(making.rows_n > 10);
	for (uint32_t i = 1; i < making.rows_n; i++) {
		assert_true(making.rows[i].pc > making.rows[i - 1].pc);
		assert_true(making.rows[i].rule != making.rows[i - 1].rule);
	}
	assert_int_equal(making.rows[making.rows_n - 1].rule, 0);
	dl_iterate_phdr(on_object, &bias);
	rule = rule_at(&making, &rules, (uint64_t)(uintptr_t)test_own_file - bias);
	assert_int_equal(rule->kind, UNWIND_SP);
#ifdef __x86_64__
	assert_int_equal(rule->cfa, 8);
#else
	assert_int_equal(rule->cfa, 0);
#endif
	making_done(&making);
	hashmap_done(&rules.by);
	free(rules.rules);
}

/* No file may take longer than that, whatever it says. */
static void test_takes_too_long(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct rules rules = { .rules = calloc(UNWIND_RULES, sizeof(*rules.rules)) };
	struct making making;

	(void)state;
	assert_non_null(rules.rules);
	assert_int_equal(making_begin(&making, fd), 0);
	assert_int_equal(making_step(&making, &rules), 1);
	assert_true(making.cpu_ns > 0);
	assert_true(making.at > 0 && making.functions_n <= 64); /* the clock is looked at often */
	making.cpu_ns = MAKING_CPU_NS;
	assert_int_equal(making_step(&making, &rules), -ETIME);
	making_done(&making);
	hashmap_done(&rules.by);
	free(rules.rules);
}

static void test_no_file_of_ours(void **state)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct making making;

	(void)state;
	assert_true(making_begin(&making, fd) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_file),
		cmocka_unit_test(test_takes_too_long),
		cmocka_unit_test(test_no_file_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
