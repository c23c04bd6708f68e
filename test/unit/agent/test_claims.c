// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "agent/claims.h"
#include "base/macro.h"

#define UUID "GPU-11111111-2222-3333-4444-555555555550"

static struct allocation claimed(const char *driver, const char *pool, const char *device)
{
	struct allocation row = { .slots = 3 };

	device_ref_claimed(driver, pool, device, &row.device);
	return row;
}

static struct kube_device told(const char *driver, const char *pool, const char *device, const char *uuid)
{
	struct kube_device d = { 0 };

	snprintf(d.driver, sizeof(d.driver), "%s", driver);
	snprintf(d.pool, sizeof(d.pool), "%s", pool);
	snprintf(d.device, sizeof(d.device), "%s", device);
	snprintf(d.uuid, sizeof(d.uuid), "%s", uuid);
	return d;
}

/* By all three names; what is not known is left out, and comes when the API tells it. */
static void names_become_devices(_unused_ void **state)
{
	const struct allocation rows[] = {
		claimed("gpu.nvidia.com", "n", "gpu-0"),
		claimed("gpu.nvidia.com", "m", "gpu-0"),
		{ .device = { .kind = DEVICE_BY_MINOR, .index = 4 } },
	};
	const struct kube_device none = told("gpu.nvidia.com", "n", "gpu-0", "what");
	const struct kube_device devices[] = {
		told("gpu.nvidia.com", "n", "gpu-0", UUID),
		told("other.example.com", "m", "gpu-0", UUID),
	};
	const struct allocation *resolved;
	struct claims *claims;
	uint32_t n;

	assert_int_equal(claims_new(&claims), 0);
	assert_int_equal(claims_resolve(claims, &resolved, &n), 0);
	assert_int_equal(n, 0);
	assert_false(claims_any(claims));
	assert_int_equal(claims_set_rows(claims, rows, ARRAY_SIZE(rows)), 0);
	assert_true(claims_any(claims));
	/* What is no UUID is nothing. */
	assert_int_equal(claims_set_devices(claims, &none, 1), 0);
	assert_int_equal(claims_resolve(claims, &resolved, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(resolved[0].device.index, 4);
	assert_int_equal(claims_left(claims), 2);
	assert_int_equal(claims_set_devices(claims, devices, ARRAY_SIZE(devices)), 0);
	assert_int_equal(claims_resolve(claims, &resolved, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(resolved[0].device.kind, DEVICE_BY_UUID);
	assert_string_equal(resolved[0].device.uuid, UUID);
	assert_int_equal(resolved[0].slots, 3);
	assert_int_equal(claims_left(claims), 1);
	assert_int_equal(claims_set_rows(claims, NULL, 0), 0);
	assert_false(claims_any(claims));
	claims_free(claims);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names_become_devices) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
