// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "kubelet/pod_resources.pb-c.h"
#include "kubelet/resources.h"
#include "model/gpu_resource.h"
#include "model/health.h"

#define GPU "GPU-11111111-2222-3333-4444-555555555555"
#define MIG "MIG-11111111-2222-3333-4444-666666666666"

static struct pod_resources resources;
static uint8_t packed[1 << 16];

static int begin(void **state)
{
	(void)state;
	pod_resources_init(&resources);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pod_resources_done(&resources);
	return 0;
}

static const struct allocation *row_at(uint32_t i)
{
	assert_true(i < resources.rows.n);
	return (const struct allocation *)resources.rows.list + i;
}

/* A pod of one container, with one kind of device or one claim. */
static void take(const char *resource, const char *const *ids, size_t n, Kubelet__ClaimResource *claim)
{
	Kubelet__ContainerDevices devices = KUBELET__CONTAINER_DEVICES__INIT, *devices_list[] = { &devices };
	Kubelet__DynamicResource dynamic = KUBELET__DYNAMIC_RESOURCE__INIT, *dynamic_list[] = { &dynamic };
	Kubelet__ContainerResources container = KUBELET__CONTAINER_RESOURCES__INIT,
				    *containers[] = { &container };
	Kubelet__PodResources pod = KUBELET__POD_RESOURCES__INIT;

	devices.resource_name = (char *)resource;
	devices.device_ids = (char **)ids;
	devices.n_device_ids = n;
	dynamic.claim_resources = &claim;
	dynamic.n_claim_resources = 1;
	container.name = (char *)"main";
	container.devices = devices_list;
	container.n_devices = n > 0;
	container.dynamic_resources = dynamic_list;
	container.n_dynamic_resources = claim != NULL;
	pod.name = (char *)"train-0";
	pod.namespace_ = (char *)"ml";
	pod.containers = containers;
	pod.n_containers = 1;
	assert_int_equal(pod_resources_take(&resources, packed, kubelet__pod_resources__pack(&pod, packed)),
			 0);
}

static void knows_names_of_resources(void **state)
{
	static const char *const gpus[] = { "nvidia.com/gpu", "nvidia.com/gpu.shared",
					    "nvidia.com/mig-1g.10gb", "gpu.nvidia.com" };
	static const char *const others[] = { "nvidia.com/gpumem", "amd.com/gpu", "", "nvidia.com/a100" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_true(resource_is_gpu(gpus[i], ""));
		assert_false(resource_is_gpu(others[i], ""));
		assert_false(resource_is_gpu(others[i], " , ,,"));
	}
	assert_true(resource_is_gpu("nvidia.com/a100", "nvidia.com/a100"));
	assert_true(resource_is_gpu("nvidia.com/a100", "x, nvidia.com/a100 ,y"));
	assert_true(resource_is_gpu("nvidia.com/a100", "x,nvidia.com/a*"));
	assert_false(resource_is_gpu("nvidia.com/a100", "nvidia.com/a10"));
}

static void adds_slots_of_one_device_up(void **state)
{
	static const char *const ids[] = { GPU "::0", GPU "::7", MIG, "nvidia2/vgpu1" };

	(void)state;
	take("nvidia.com/gpu", ids, 4, NULL);
	assert_int_equal(resources.rows.n, 3);
	assert_string_equal(row_at(0)->device.uuid, GPU);
	assert_int_equal(row_at(0)->slots, 2);
	assert_string_equal(row_at(0)->namespace, "ml");
	assert_string_equal(row_at(0)->pod, "train-0");
	assert_string_equal(row_at(0)->container, "main");
	assert_string_equal(row_at(0)->resource, "nvidia.com/gpu");
	assert_int_equal(row_at(0)->workload, WORKLOAD_NONE);
	assert_string_equal(row_at(1)->device.uuid, MIG);
	assert_int_equal(row_at(1)->slots, 0);
	assert_int_equal(row_at(2)->device.kind, DEVICE_BY_MINOR);
	assert_int_equal(row_at(2)->device.index, 2);
	assert_int_equal(row_at(2)->slots, 1);
}

static void counts_what_names_no_gpu(void **state)
{
	static const char *const ids[] = { "0000:65:00.0", GPU, "\x1b[31m" };

	(void)state;
	take("nvidia.com/gpu", ids, 3, NULL);
	assert_int_equal(resources.rows.n, 1);
	assert_int_equal(resources.unmatched, 2);
	assert_string_equal(resources.unmatched_example, "0000:65:00.0 of nvidia.com/gpu");
	take("example.com/nic", ids, 3, NULL);
	assert_int_equal(resources.unmatched, 2);
	pod_resources_clear(&resources);
	assert_int_equal(resources.rows.n + resources.unmatched, 0);
	assert_string_equal(resources.unmatched_example, "");
}

static void take_claim(const char *driver, const char *device, const char *cdi, const char *share)
{
	Kubelet__ClaimResource claim = KUBELET__CLAIM_RESOURCE__INIT;
	Kubelet__CDIDevice name = KUBELET__CDIDEVICE__INIT, *names[] = { &name };

	name.name = (char *)cdi;
	claim.driver_name = (char *)driver;
	claim.pool_name = (char *)"node";
	claim.device_name = (char *)device;
	claim.cdi_devices = names;
	claim.n_cdi_devices = *cdi != '\0';
	claim.share_id = (char *)share;
	take("", NULL, 0, &claim);
}

static void finds_devices_of_dra(void **state)
{
	static const char spec[] =
		"cdiVersion: 0.5.0\nkind: k8s.gpu.nvidia.com/claim\ndevices:\n"
		"- {name: one, containerEdits: {deviceNodes: [{path: /dev/nvidia6}]}}\n"
		"- {name: uid-gpu-4, containerEdits: {deviceNodes: [{path: /dev/nvidia7}]}}\n";
	struct cdi *cdi;

	(void)state;
	assert_int_equal(cdi_new(&cdi), 0);
	assert_int_equal(cdi_add(cdi, spec, sizeof(spec) - 1, NULL), 0);
	resources.cdi = cdi;
	take_claim("gpu.nvidia.com", "x", "nvidia.com/gpu=" GPU, "");
	take_claim("gpu.nvidia.com", "x", "k8s.gpu.nvidia.com/claim=one", "share");
	take_claim("gpu.nvidia.com", "gpu-4", "", "");
	take_claim("gpu.nvidia.com", "gpu-5", "", "");
	take_claim("other.example.com", "gpu-6", "", "");
	take_claim("gpu.nvidia.com", "gpu-7-mig-what", "k8s.gpu.nvidia.com/claim=none", "");
	assert_int_equal(resources.rows.n, 5);
	assert_int_equal(row_at(4)->device.kind, DEVICE_CLAIMED);
	assert_int_equal(resources.claimed, 1);
	assert_string_equal(row_at(0)->device.uuid, GPU);
	assert_int_equal(row_at(0)->slots, 0);
	assert_int_equal(row_at(1)->device.index, 6);
	assert_int_equal(row_at(1)->slots, 1);
	assert_int_equal(row_at(2)->device.index, 7);
	assert_int_equal(row_at(3)->device.index, 5);
	assert_int_equal(resources.unmatched, 1);
	assert_string_equal(resources.unmatched_example, "node/gpu-7-mig-what of gpu.nvidia.com");
	cdi_free(cdi);
}

static bool counts(const char *namespace, const char *pod, char ret_uid[48], void *userdata)
{
	assert_string_equal(namespace, "ml");
	assert_string_equal(pod, "train-0");
	strcpy(ret_uid, "uid-1");
	return *(bool *)userdata;
}

static void takes_ended_pods_back(void **state)
{
	static const char *const ids[] = { GPU, "no" }, *const more[] = { "0", "1", "2" };
	bool lives = true;

	(void)state;
	resources.counts = counts;
	resources.userdata = &lives;
	take("nvidia.com/gpu", ids, 1, NULL);
	assert_string_equal(row_at(0)->pod_uid, "uid-1");
	lives = false;
	take("nvidia.com/gpu", ids, 2, NULL);
	assert_int_equal(resources.rows.n, 1);
	assert_int_equal(resources.unmatched, 0);
	/* Also what did not fit. */
	resources.rows.max = 2;
	take("nvidia.com/gpu", more, 3, NULL);
	assert_int_equal(resources.rows.n, 1);
	assert_int_equal(resources.rows.dropped, 0);
	lives = true;
	take("nvidia.com/gpu", more, 3, NULL);
	assert_int_equal(resources.rows.dropped, 2);
	lives = false;
	take("nvidia.com/gpu", more, 3, NULL);
	assert_int_equal(resources.rows.dropped, 2);
	assert_int_equal(resources.rows.n, 2);
}

static void counts_what_it_cannot_read(void **state)
{
	static const char *const texts[] = { "", "\x0a\x7f", "\x0a\x01x", "\x1a\x04\x1a\x02\x1a\x00" };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pod_resources_take(&resources, (const uint8_t *)texts[i], strlen(texts[i])),
				 0);
	assert_int_equal(resources.unreadable, 4);
	assert_int_equal(resources.rows.n, 0);
}

static void counts_what_can_be_given(void **state)
{
	Kubelet__ContainerDevices devices = KUBELET__CONTAINER_DEVICES__INIT;
	char *ids[] = { (char *)GPU "::0", (char *)GPU "::1" };

	(void)state;
	devices.device_ids = ids;
	devices.n_device_ids = 2;
	devices.resource_name = (char *)"nvidia.com/gpu.shared";
	assert_int_equal(pod_resources_take_allocatable(&resources, packed,
							kubelet__container_devices__pack(&devices, packed)),
			 0);
	devices.resource_name = (char *)"example.com/nic";
	assert_int_equal(pod_resources_take_allocatable(&resources, packed,
							kubelet__container_devices__pack(&devices, packed)),
			 0);
	assert_int_equal(resources.allocatable, 2);
}

/* What was given, and is not in the list any more, is bad; shared slots of one device are one. */
static void tells_what_cannot_be_given_any_more(void **state)
{
	static const char *const given[] = { GPU "::3", MIG };
	Kubelet__ContainerDevices devices = KUBELET__CONTAINER_DEVICES__INIT;
	char *ids[] = { (char *)GPU "::0", (char *)GPU "::1", (char *)"nic0" };
	const struct device_health *rows;

	(void)state;
	take("nvidia.com/gpu.shared", given, 2, NULL);
	devices.device_ids = ids;
	devices.n_device_ids = 3;
	devices.resource_name = (char *)"nvidia.com/gpu.shared";
	pod_resources_take_allocatable(&resources, packed,
				       kubelet__container_devices__pack(&devices, packed));
	pod_resources_compare(&resources);
	assert_int_equal(resources.listed.n, 2);
	rows = resources.listed.list;
	assert_string_equal(rows[0].device.uuid, GPU);
	assert_int_equal(rows[0].health, HEALTH_GOOD);
	assert_string_equal(rows[1].device.uuid, MIG);
	assert_int_equal(rows[1].health, HEALTH_BAD);
	/* A list that comes again begins anew. */
	pod_resources_clear(&resources);
	assert_int_equal(resources.given.n, 0);
}

static void digests_differ_with_rows_not_with_their_order(void **state)
{
	static const char *const ab[] = { GPU, MIG }, *const ba[] = { MIG, GPU };
	uint64_t first;

	(void)state;
	take("nvidia.com/gpu", ab, 2, NULL);
	first = row_list_digest(&resources.rows);
	pod_resources_clear(&resources);
	take("nvidia.com/gpu", ba, 2, NULL);
	assert_true(row_list_digest(&resources.rows) == first);
	pod_resources_clear(&resources);
	take("nvidia.com/gpu", ba, 1, NULL);
	assert_true(row_list_digest(&resources.rows) != first);
	pod_resources_clear(&resources);
	assert_true(row_list_digest(&resources.rows) != 0);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(knows_names_of_resources),
		CASE(adds_slots_of_one_device_up),
		CASE(counts_what_names_no_gpu),
		CASE(finds_devices_of_dra),
		CASE(takes_ended_pods_back),
		CASE(counts_what_it_cannot_read),
		CASE(counts_what_can_be_given),
		CASE(tells_what_cannot_be_given_any_more),
		CASE(digests_differ_with_rows_not_with_their_order),
	};

	return cmocka_run_group_tests_name("resources", tests, NULL, NULL);
}
