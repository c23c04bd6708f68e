// SPDX-License-Identifier: Apache-2.0
/* Each row: what the variable is, and which devices a program then sees, in order. */
#include <stdio.h>

#include "cuda/private.h"
#include "test.h"

#define GPU(n)                                             \
	{                                                  \
		.uuid = "GPU-" n n n n "-0000", .speed = 1 \
	}
#define MIG(n, of)                                                                                     \
	{                                                                                              \
		.uuid = "MIG-" n n n n "-0000", .parent = "GPU-" of of of of "-0000", .gi = n[0] - '0' \
	}

static const struct cuda_device four[] = { GPU("a"), GPU("ab"), GPU("b"), GPU("c") };
static const struct cuda_device uneven[] = {
	{ .uuid = "GPU-slow", .speed = 1 },
	{ .uuid = "GPU-fast", .speed = 3 },
	{ .uuid = "GPU-mid", .speed = 2 },
	{ .uuid = "GPU-mid2", .speed = 2 },
};
static const struct cuda_device mixed[] = {
	GPU("a"),
	{ .uuid = "GPU-bbbb-0000", .mig = true },
	MIG("1", "b"),
	MIG("2", "b"),
	{ .uuid = "GPU-cccc-0000", .mig = true },
	MIG("3", "c"),
	{ .uuid = "MIG-GPU-dddd/7/0", .parent = "GPU-dddd-0000" },
};

struct row {
	const struct cuda_device *devices;
	uint32_t n;
	const char *value, *order;
	const char *seen; /* indexes, as digits */
	bool estimated;
};
#define NODE(devices_) devices_, ARRAY_SIZE(devices_)

static const struct row rows[] = {
	{ NODE(four), NULL, NULL, "0123", false },
	{ NODE(four), "", NULL, "", false },
	{ NODE(four), "0", NULL, "0", false },
	{ NODE(four), "2,1", NULL, "21", false },
	{ NODE(four), "0,2,-1,1", NULL, "02", false }, /* the programming guide's own example */
	{ NODE(four), "-1", NULL, "", false },
	{ NODE(four), "NoDevFiles", NULL, "", false },
	{ NODE(four), "0,4,1", NULL, "0", false },
	{ NODE(four), "99999999999999999999999", NULL, "", false },
	{ NODE(four), "18446744073709551616", NULL, "", false },
	{ NODE(four), "0,0", NULL, "", false },
	{ NODE(four), "1,2,1", NULL, "", false },
	{ NODE(four), " 1 , 2", NULL, "12", false },
	{ NODE(four), "+1,02", NULL, "12", false },
	{ NODE(four), "1gpu,2x", NULL, "12", false },
	{ NODE(four), "1,,2", NULL, "1", false },
	{ NODE(four), ",1", NULL, "", false },
	{ NODE(four), "3,", NULL, "3", false },
	{ NODE(four), "GPU-bbbb", NULL, "2", false },
	{ NODE(four), "GPU-c,GPU-aaaa", NULL, "30", false },
	{ NODE(four), "GPU-b,GPU-a", NULL, "2", false }, /* two begin so */
	{ NODE(four), "GPU-aaaa-0000,GPU-aaaa", NULL, "", false }, /* the same one twice */
	{ NODE(four), "GPU-b,1", NULL, "2", false }, /* a list of one kind only */
	{ NODE(four), "1,GPU-b", NULL, "1", false },
	{ NODE(four), "GPU-x", NULL, "", false },
	{ NODE(four), "gpu-b", NULL, "", false },
	{ NODE(uneven), NULL, NULL, "1230", true },
	{ NODE(uneven), "0,1", NULL, "12", true },
	{ NODE(uneven), "0,1", "FASTEST_FIRST", "12", true },
	{ NODE(uneven), "0,1", "PCI_BUS_ID", "01", false },
	{ NODE(uneven), NULL, "PCI_BUS_ID", "0123", false },
	{ NODE(uneven), " GPU-slow", NULL, "0", false },
	{ NODE(mixed), NULL, NULL, "2", false },
	{ NODE(mixed), "0", NULL, "0", false },
	{ NODE(mixed), "1", NULL, "2", false }, /* the first instance of the first GPU in MIG mode */
	{ NODE(mixed), "2", NULL, "5", false },
	{ NODE(mixed), "3", NULL, "", false },
	{ NODE(mixed), "0,1", NULL, "2", false }, /* no GPU beside an instance */
	{ NODE(mixed), "MIG-2222", NULL, "3", false },
	{ NODE(mixed), "MIG-2222,MIG-1111", NULL, "3", false }, /* never two */
	{ NODE(mixed), "MIG-2222,MIG-2222", NULL, "", false },
	{ NODE(mixed), "GPU-bbbb", NULL, "2", false },
	{ NODE(mixed), "GPU-aaaa", NULL, "0", false },
	{ NODE(mixed), "GPU-aaaa,MIG-2222", NULL, "0", false },
	{ NODE(mixed), "MIG-GPU-dddd/7/0", NULL, "6", false },
	{ NODE(mixed), "MIG-GPU-dddd/7/1", NULL, "", false },
	{ NODE(mixed), "MIG-GPU-bbbb-0000/2/0", NULL, "3", false }, /* the guide's form */
	{ NODE(mixed), "MIG-GPU-bbbb-0000/2/1", NULL, "", false },
	{ NODE(mixed), "MIG-GPU-bbbb/2/0", NULL, "", false },
	{ NODE(mixed), "MIG-GPU-bbbb-0000/2/0x", NULL, "", false },
	{ NODE(four), "\n2\r\n", NULL, "2", false },
	{ four, 0, NULL, NULL, "", false },
	{ four, 0, "0", NULL, "", false },
	{ four, 1, "GPU-", NULL, "0", false },
};

static void all_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct visible v;
		char seen[VISIBLE_MAX + 1] = "";

		visible_resolve(rows[i].devices, rows[i].n, rows[i].value, rows[i].order, &v);
		for (uint32_t k = 0; k < v.n; k++)
			seen[k] = (char)('0' + v.device[k]);
		if (!STRV_EQ(seen, rows[i].seen) || v.estimated != rows[i].estimated)
			print_error("CUDA_VISIBLE_DEVICES=%s: %s%s, not %s\n",
				    rows[i].value ? rows[i].value : "(unset)", seen,
				    v.estimated ? " (estimated)" : "", rows[i].seen);
		assert_string_equal(seen, rows[i].seen);
		assert_int_equal(v.estimated, rows[i].estimated);
	}
}

/* A value longer than any list can be, a token longer than any UUID. */
static void long_ones(void **state)
{
	char value[VALUE_MAX * 2];
	struct visible v;

	(void)state;
	memset(value, 'x', sizeof(value));
	memcpy(value, "1,GPU-", 6);
	value[sizeof(value) - 1] = 0;
	visible_resolve(four, 4, value, NULL, &v);
	assert_int_equal(v.n, 1);
	memset(value, '1', sizeof(value) - 1);
	visible_resolve(four, 4, value, NULL, &v);
	assert_int_equal(v.n, 0);
}

/* More devices than a process can see. */
static void many_devices(void **state)
{
	static struct cuda_device devices[VISIBLE_MAX + 10];
	struct visible v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		snprintf(devices[i].uuid, sizeof(devices[i].uuid), "GPU-%zu-", i);
	visible_resolve(devices, ARRAY_SIZE(devices), NULL, NULL, &v);
	assert_int_equal(v.n, VISIBLE_MAX);
	assert_true(v.estimated); /* whose speed is not known */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows),
		cmocka_unit_test(long_ones),
		cmocka_unit_test(many_devices),
	};

	return cmocka_run_group_tests_name("visible", tests, NULL, NULL);
}
