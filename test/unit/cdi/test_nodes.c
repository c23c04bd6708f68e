// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "cdi/nodes.h"

#define CAPS                                                                                    \
	"config 1\nmonitor 2\ngpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\ngpu0/gi8/access 75\n" \
	"gpu0/gi8/ci0/access 76\ngpu0/gi8/ci1/access 77\ngpu1/gi7/access 201\n"

static struct device_ref refs[8];

static uint32_t resolve(const struct gpu_nodes *nodes, const char *text)
{
	struct mig_caps caps = { 0 };
	uint32_t n;

	if (text)
		assert_int_equal(mig_caps_parse(text, strlen(text), &caps), 0);
	n = gpu_nodes_refs(nodes, text ? &caps : NULL, refs, 8);
	mig_caps_done(&caps);
	return n;
}

static void is_ref(const struct device_ref *ref, uint32_t minor, uint32_t gi, uint32_t ci)
{
	assert_int_equal(ref->kind, DEVICE_BY_MINOR);
	assert_int_equal(ref->index, minor);
	assert_int_equal(ref->gi, gi);
	assert_int_equal(ref->ci, ci);
}

static void only_gpus_count(void **state)
{
	static const char *const others[] = { "/dev/nvidiactl",
					      "/dev/nvidia-uvm",
					      "/dev/nvidia-modeset",
					      "/dev/nvidia",
					      "/dev/nvidia1x",
					      "/dev/nvidia255",
					      "/dev/nvidia-caps/nvidia-cap",
					      "/dev/nvidia99999999999999999999",
					      "/x/dev/nvidia0",
					      "nvidia0",
					      "" };
	struct gpu_nodes nodes = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(gpu_nodes_add(&nodes, others[i]));
	assert_false(gpu_nodes_add_number(&nodes, 195, 254));
	assert_false(gpu_nodes_add_number(&nodes, 195, 255));
	assert_false(gpu_nodes_add_number(&nodes, 226, 0));
	assert_int_equal(resolve(&nodes, NULL), 0);
	assert_true(gpu_nodes_add(&nodes, "/dev/nvidia3"));
	assert_true(gpu_nodes_add_number(&nodes, 195, 1));
	assert_int_equal(resolve(&nodes, NULL), 2);
	is_ref(&refs[0], 1, DEVICE_REF_NO, DEVICE_REF_NO);
	is_ref(&refs[1], 3, DEVICE_REF_NO, DEVICE_REF_NO);
}

static void instances_by_the_drivers_list(void **state)
{
	struct gpu_nodes nodes = { 0 };

	(void)state;
	gpu_nodes_add(&nodes, "/dev/nvidia0");
	gpu_nodes_add(&nodes, "/dev/nvidia1");
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap75");
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap77");
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap77");
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap2");
	assert_int_equal(resolve(&nodes, CAPS), 2);
	is_ref(&refs[0], 0, 8, 1);
	is_ref(&refs[1], 1, DEVICE_REF_NO, DEVICE_REF_NO);
	/* A GPU instance's node alone: all of it. */
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap66");
	assert_int_equal(resolve(&nodes, CAPS), 3);
	is_ref(&refs[1], 0, 7, DEVICE_REF_NO);
}

/* Not the whole GPU. */
static void an_unknown_instance_is_not_known(void **state)
{
	struct gpu_nodes nodes = { 0 };

	(void)state;
	gpu_nodes_add(&nodes, "/dev/nvidia0");
	gpu_nodes_add(&nodes, "/dev/nvidia-caps/nvidia-cap300");
	assert_int_equal(resolve(&nodes, CAPS), 0);
	assert_int_equal(resolve(&nodes, NULL), 0);
}

static void too_many_are_not_known(void **state)
{
	struct gpu_nodes nodes = { 0 };
	char path[64];

	(void)state;
	gpu_nodes_add(&nodes, "/dev/nvidia0");
	for (unsigned i = 0; i <= GPU_NODES_MAX; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u", 100 + i);
		assert_true(gpu_nodes_add(&nodes, path));
	}
	assert_true(nodes.cut);
	assert_int_equal(resolve(&nodes, NULL), 0);
	assert_false(gpu_nodes_equal(&nodes, &nodes));
}

static void equal_in_any_order(void **state)
{
	struct gpu_nodes a = { 0 }, b = { 0 };

	(void)state;
	gpu_nodes_add(&a, "/dev/nvidia-caps/nvidia-cap66");
	gpu_nodes_add(&a, "/dev/nvidia-caps/nvidia-cap67");
	gpu_nodes_add(&b, "/dev/nvidia-caps/nvidia-cap67");
	assert_false(gpu_nodes_equal(&a, &b));
	gpu_nodes_add(&b, "/dev/nvidia-caps/nvidia-cap66");
	assert_true(gpu_nodes_equal(&a, &b));
	assert_int_equal(gpu_nodes_hash(&a), gpu_nodes_hash(&b));
	gpu_nodes_add(&b, "/dev/nvidia0");
	assert_false(gpu_nodes_equal(&a, &b));
}

static void what_is_no_list_has_no_instances(void **state)
{
	static const char *const texts[] = { "",
					     "gpu0/gi7/access 66",
					     "gpu/gi7/access 6\n",
					     "gpu0/gi7/access x\n",
					     "gpu0/gi7/access 66 7\n",
					     "gpu0/gi99999999999/access 66\n" };
	struct mig_caps caps;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(mig_caps_parse(texts[i], strlen(texts[i]), &caps), 0);
		assert_int_equal(caps.n, 0);
		mig_caps_done(&caps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_gpus_count),
		cmocka_unit_test(instances_by_the_drivers_list),
		cmocka_unit_test(an_unknown_instance_is_not_known),
		cmocka_unit_test(too_many_are_not_known),
		cmocka_unit_test(equal_in_any_order),
		cmocka_unit_test(what_is_no_list_has_no_instances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
