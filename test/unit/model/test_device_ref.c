// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "model/device_ref.h"

#define NO DEVICE_REF_NO
#define UUID "8d2a1b3c-0001-4222-8333-944455566677"

static void every_form(_unused_ void **state)
{
	static const struct {
		const char *text;
		enum device_ref_kind kind;
		uint32_t index, gi, ci, mig;
		const char *uuid;
		bool replica;
	} rows[] = {
		{ "GPU-" UUID, DEVICE_BY_UUID, NO, NO, NO, NO, "GPU-" UUID, false },
		{ "GPU-8d2a", DEVICE_BY_UUID, NO, NO, NO, NO, "GPU-8d2a", false },
		{ "GPU-" UUID "::2", DEVICE_BY_UUID, NO, NO, NO, NO, "GPU-" UUID, true },
		{ "MIG-" UUID, DEVICE_BY_UUID, NO, NO, NO, NO, "MIG-" UUID, false },
		{ "MIG-" UUID "::13", DEVICE_BY_UUID, NO, NO, NO, NO, "MIG-" UUID, true },
		{ "MIG-GPU-" UUID "/7/0", DEVICE_BY_UUID, NO, 7, 0, NO, "GPU-" UUID, false },
		{ "3", DEVICE_BY_INDEX, 3, NO, NO, NO, "", false },
		{ "3::0", DEVICE_BY_INDEX, 3, NO, NO, NO, "", true },
		{ "3:1", DEVICE_BY_INDEX, 3, NO, NO, 1, "", false },
		{ "3:1::4", DEVICE_BY_INDEX, 3, NO, NO, 1, "", true },
		{ "nvidia3", DEVICE_BY_MINOR, 3, NO, NO, NO, "", false },
		{ "nvidia3/gi7", DEVICE_BY_MINOR, 3, 7, NO, NO, "", false },
		{ "nvidia3/gi7/vgpu1", DEVICE_BY_MINOR, 3, 7, NO, NO, "", true },
		{ "nvidia0/vgpu2", DEVICE_BY_MINOR, 0, NO, NO, NO, "", true },
		{ "gpu-5", DEVICE_BY_MINOR, 5, NO, NO, NO, "", false },
		{ "all", DEVICE_ALL, NO, NO, NO, NO, "", false },
		{ "none", DEVICE_NOT, NO, NO, NO, NO, "", false },
		{ "void", DEVICE_NOT, NO, NO, NO, NO, "", false },
		{ "nvidia.com/gpu=all", DEVICE_ALL, NO, NO, NO, NO, "", false },
		{ "nvidia.com/gpu=1:0", DEVICE_BY_INDEX, 1, NO, NO, 0, "", false },
		{ "k8s.device-plugin.nvidia.com/gpu=GPU-" UUID, DEVICE_BY_UUID, NO, NO, NO, NO, "GPU-" UUID,
		  false },
		{ "k8s.gpu.nvidia.com/device=gpu-2", DEVICE_BY_MINOR, 2, NO, NO, NO, "", false },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct device_ref ref;
		bool replica = !rows[i].replica;

		memset(&ref, 0xff, sizeof(ref));
		if (device_ref_parse(rows[i].text, &ref, &replica) != 0)
			fail_msg("%s is not taken", rows[i].text);
		if (ref.kind != rows[i].kind || ref.index != rows[i].index || ref.gi != rows[i].gi ||
		    ref.ci != rows[i].ci || ref.mig != rows[i].mig || replica != rows[i].replica ||
		    strcmp(ref.uuid, rows[i].uuid) != 0)
			fail_msg("%s: kind %d, index %u, gi %u, ci %u, mig %u, '%s', replica %d",
				 rows[i].text, (int)ref.kind, ref.index, ref.gi, ref.ci, ref.mig, ref.uuid,
				 replica);
		assert_int_equal(device_ref_parse(rows[i].text, &ref, NULL), 0);
	}
}

static void anything_else_is_refused(_unused_ void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"0 ",
		" 0",
		"-1",
		"+1",
		"1,2",
		"0x1",
		"1:",
		":1",
		"1:2:3",
		"1:2/3",
		"65536",
		"99999999999",
		"GPU-",
		"MIG-",
		"GPU",
		"GPU--",
		"GPU-8d2a/1",
		"GPU-8d2a/1/0",
		"GPU-8d 2a",
		"GPU-\xff",
		"MIG-GPU-8d2a",
		"MIG-GPU-8d2a/7",
		"MIG-GPU-8d2a/7/",
		"MIG-GPU-8d2a/7/0/1",
		"MIG-GPU-/7/0",
		"MIG-8d2a/7/0",
		"nvidia",
		"nvidia3/",
		"nvidia3/gi",
		"nvidia3/gi7/",
		"nvidiactl",
		"nvidia-uvm",
		"gpu-",
		"gpu-0-mig-9-0-1",
		"gpu-vfio-0",
		"ALL",
		"all ",
		"all,none",
		"::1",
		"GPU-8d2a::",
		"GPU-8d2a::x",
		"GPU-8d2a::1::2",
		"GPU-8d2a/vgpu",
		"no-gpu-has-256MiB-to-run",
		"vendor.com/gpu=0",
		"evilnvidia.com/gpu=0",
		"nvidia.com/gpu=",
		"=0",
	};
	char longest[300] = "GPU-";

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		struct device_ref ref = { .kind = DEVICE_ALL, .index = 77 };
		bool replica = true;

		if (device_ref_parse(texts[i], &ref, &replica) != -EINVAL)
			fail_msg("'%s' is taken", texts[i]);
		assert_true(ref.kind == DEVICE_ALL && ref.index == 77 && replica);
	}
	memset(longest + 4, 'a', 75);
	assert_int_equal(device_ref_parse(longest, &(struct device_ref){ 0 }, NULL), 0);
	longest[79] = 'a';
	assert_int_equal(device_ref_parse(longest, &(struct device_ref){ 0 }, NULL), -EINVAL);
	memset(longest, '0', sizeof(longest) - 1);
	assert_int_equal(device_ref_parse(longest, &(struct device_ref){ 0 }, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form),
		cmocka_unit_test(anything_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
