// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kubelet/pod.pb-c.h"
#include "kubelet/pods.h"
#include "model/health.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static struct pods pods;
static uint8_t packed[1 << 16];

static int begin(void **state)
{
	(void)state;
	pods_init(&pods);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pods_done(&pods);
	return 0;
}

static void take(const Kubelet__Pod *pod)
{
	assert_int_equal(pods_take(&pods, packed, kubelet__pod__pack(pod, packed)), 0);
}

static const struct owner *owner_at(uint32_t i)
{
	assert_true(i < pods.owners.n);
	return (const struct owner *)pods.owners.list + i;
}

static void expect(uint32_t i, enum workload_kind kind, const char *id, const char *container)
{
	assert_int_equal(owner_at(i)->workload, kind);
	assert_string_equal(owner_at(i)->id, id);
	assert_string_equal(owner_at(i)->namespace, "ml");
	assert_string_equal(owner_at(i)->pod, "train-0");
	assert_string_equal(owner_at(i)->container, container);
}

static Kubelet__ObjectMeta meta(void)
{
	Kubelet__ObjectMeta m = KUBELET__OBJECT_META__INIT;

	m.name = (char *)"train-0";
	m.namespace_ = (char *)"ml";
	m.uid = (char *)"uid-1";
	return m;
}

static void names_containers_of_all_kinds(void **state)
{
	Kubelet__ObjectMeta m = meta();
	Kubelet__PodStatus status = KUBELET__POD_STATUS__INIT;
	Kubelet__Pod pod = KUBELET__POD__INIT;
	Kubelet__ContainerStatus list[4] = { KUBELET__CONTAINER_STATUS__INIT, KUBELET__CONTAINER_STATUS__INIT,
					     KUBELET__CONTAINER_STATUS__INIT,
					     KUBELET__CONTAINER_STATUS__INIT };
	Kubelet__ContainerStatus *containers[] = { &list[0], &list[3] }, *init[] = { &list[1] },
				 *ephemeral[] = { &list[2] };
	static const char *const names[] = { "main", "init", "debug", "not started" };
	static const char *const ids[] = { "containerd://" HEX "0", "cri-o://" HEX "1", HEX "2", "" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		list[i].name = (char *)names[i];
		list[i].container_id = (char *)ids[i];
	}
	status.container_statuses = containers;
	status.n_container_statuses = 2;
	status.init_container_statuses = init;
	status.n_init_container_statuses = 1;
	status.ephemeral_container_statuses = ephemeral;
	status.n_ephemeral_container_statuses = 1;
	pod.metadata = &m;
	pod.status = &status;
	take(&pod);
	assert_int_equal(pods.owners.n, 4);
	expect(0, WORKLOAD_POD, "uid-1", "");
	expect(1, WORKLOAD_CONTAINER, HEX "0", "main");
	expect(2, WORKLOAD_CONTAINER, HEX "1", "init");
	expect(3, WORKLOAD_CONTAINER, HEX "2", "debug");
	assert_int_equal(pods.unreadable, 0);
}

static void tells_health_of_gpus(void **state)
{
	static const char *const words[] = { "Unhealthy", "Healthy", "Unknown" };
	Kubelet__ObjectMeta m = meta();
	Kubelet__PodStatus status = KUBELET__POD_STATUS__INIT;
	Kubelet__Pod pod = KUBELET__POD__INIT;
	Kubelet__ContainerStatus one = KUBELET__CONTAINER_STATUS__INIT, *list[] = { &one };
	Kubelet__ResourceStatus resource[2] = { KUBELET__RESOURCE_STATUS__INIT,
						KUBELET__RESOURCE_STATUS__INIT },
				*resources[] = { &resource[0], &resource[1] };
	Kubelet__ResourceHealth health[3] = { KUBELET__RESOURCE_HEALTH__INIT, KUBELET__RESOURCE_HEALTH__INIT,
					      KUBELET__RESOURCE_HEALTH__INIT },
				*healths[] = { &health[0], &health[1], &health[2] };
	const struct device_health *rows;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		health[i].resource_id = (char *)(i < 2 ? "GPU-1" : "GPU-2");
		health[i].health = (char *)words[i];
	}
	resource[0].name = (char *)"nvidia.com/gpu";
	resource[1].name = (char *)"example.com/nic";
	resource[0].resources = resource[1].resources = healths;
	resource[0].n_resources = 3;
	resource[1].n_resources = 1;
	one.allocated_resources_status = resources;
	one.n_allocated_resources_status = 2;
	pod.metadata = &m;
	pod.status = &status;
	status.container_statuses = list;
	status.n_container_statuses = 1;
	take(&pod);
	rows = pods.health.list;
	assert_int_equal(pods.health.n, 2);
	assert_string_equal(rows[0].device.uuid, "GPU-1");
	assert_int_equal(rows[0].health, HEALTH_BAD);
	assert_int_equal(rows[1].health, HEALTH_UNKNOWN);
	/* Of a pod that has ended nothing is known. */
	pods_clear(&pods);
	status.phase = (char *)"Failed";
	take(&pod);
	assert_int_equal(pods.health.n, 0);
}

static void refuses_ids_that_are_none(void **state)
{
	static const char *const ids[] = { "containerd://" HEX, "containerd://" HEX "0f", "docker://" HEX "G",
					   "://", "containerd://../../" HEX "0" };
	Kubelet__ObjectMeta m = meta();
	Kubelet__PodStatus status = KUBELET__POD_STATUS__INIT;
	Kubelet__Pod pod = KUBELET__POD__INIT;
	Kubelet__ContainerStatus one = KUBELET__CONTAINER_STATUS__INIT, *list[] = { &one };

	(void)state;
	pod.metadata = &m;
	pod.status = &status;
	status.container_statuses = list;
	status.n_container_statuses = 1;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		one.container_id = (char *)ids[i];
		take(&pod);
	}
	assert_int_equal(pods.owners.n, sizeof(ids) / sizeof(ids[0])); /* the pods alone */
}

static void names_the_controller(void **state)
{
	Kubelet__ObjectMeta m = meta();
	Kubelet__Pod pod = KUBELET__POD__INIT;
	Kubelet__OwnerReference a = KUBELET__OWNER_REFERENCE__INIT, b = KUBELET__OWNER_REFERENCE__INIT;
	Kubelet__OwnerReference *list[] = { &a, &b };

	(void)state;
	a.kind = (char *)"Node";
	a.name = (char *)"x";
	b.kind = (char *)"StatefulSet";
	b.name = (char *)"train";
	b.controller = true;
	m.owner_references = list;
	m.n_owner_references = 2;
	pod.metadata = &m;
	take(&pod);
	assert_string_equal(owner_at(0)->owner_kind, "StatefulSet");
	assert_string_equal(owner_at(0)->owner_name, "train");
	m.n_owner_references = 1;
	take(&pod);
	assert_string_equal(owner_at(1)->owner_kind, "");
}

static void knows_static_pods_by_their_hash(void **state)
{
	Kubelet__ObjectMeta m = meta();
	Kubelet__Pod pod = KUBELET__POD__INIT;
	Kubelet__Annotation a = KUBELET__ANNOTATION__INIT, b = a, *list[] = { &a, &b };

	(void)state;
	a.key = (char *)"kubernetes.io/config.hash";
	b.key = (char *)"kubernetes.io/config.mirror";
	a.value = b.value = (char *)"0123456789abcdef0123456789abcdef";
	m.annotations = list;
	m.n_annotations = 2;
	pod.metadata = &m;
	take(&pod);
	pods_end(&pods);
	expect(0, WORKLOAD_POD, "uid-1", "");
	expect(1, WORKLOAD_POD, "0123456789abcdef0123456789abcdef", "");
	/* Without the other one any pod could say that it is another one. */
	pods_clear(&pods);
	m.n_annotations = 1;
	take(&pod);
	pods_end(&pods);
	expect(0, WORKLOAD_POD, "uid-1", "");
	assert_int_equal(pods.owners.n, 1);
}

/* The user who made the pod chooses its annotations: in no order do they make it another pod. */
static void takes_no_uid_of_another_pod(void **state)
{
	static const char hash[] = "0123456789abcdef0123456789abcdef";
	Kubelet__ObjectMeta thief = meta(), other = meta();
	Kubelet__Pod pod[2] = { KUBELET__POD__INIT, KUBELET__POD__INIT };
	Kubelet__Annotation a = KUBELET__ANNOTATION__INIT, b = a, *list[] = { &a, &b };

	(void)state;
	a.key = (char *)"kubernetes.io/config.hash";
	b.key = (char *)"kubernetes.io/config.mirror";
	a.value = b.value = (char *)hash;
	thief.annotations = list;
	thief.n_annotations = 2;
	pod[0].metadata = &thief;
	pod[1].metadata = &other;
	other.name = (char *)"other";
	for (unsigned turn = 0; turn < 4; turn++) {
		/* The other one's own UID, or that of its static pod. */
		other.uid = (char *)(turn < 2 ? hash : "uid-2");
		other.annotations = turn < 2 ? NULL : list;
		other.n_annotations = turn < 2 ? 0 : 2;
		pods_clear(&pods);
		take(&pod[turn & 1]);
		take(&pod[!(turn & 1)]);
		pods_end(&pods);
		assert_int_equal(pods.owners.n, 2);
	}
}

static void knows_which_have_ended(void **state)
{
	static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed", "Unknown" };
	Kubelet__ObjectMeta m = meta();
	Kubelet__PodStatus status = KUBELET__POD_STATUS__INIT;
	Kubelet__Pod pod = KUBELET__POD__INIT;
	char name[16];

	(void)state;
	pod.metadata = &m;
	pod.status = &status;
	m.name = name;
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		status.phase = (char *)phases[i];
		take(&pod);
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		assert_int_equal(pods_find(&pods, "ml", name)->ended, i == 2 || i == 3);
	}
	assert_null(pods_find(&pods, "other", "p0"));
	pods_clear(&pods);
	assert_null(pods_find(&pods, "ml", "p0"));
	assert_int_equal(pods.owners.n, 0);
}

static void counts_what_it_cannot_read(void **state)
{
	/* Nothing; cut; a deep nest of metadata; a name with no UID. */
	static const char *const texts[] = { "", "\x0a\x7f", "\x0a\x06\x0a\x04\x0a\x02\x0a\x00",
					     "\x0a\x03\x0a\x01x" };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pods_take(&pods, (const uint8_t *)texts[i], strlen(texts[i])), 0);
	assert_int_equal(pods.unreadable, 4);
	assert_int_equal(pods.owners.n + pods.list.n, 0);
}

/* Of two bytes each a hundred are made. */
static void bounds_what_a_pod_becomes(void **state)
{
	static const char meta_bytes[] = "\x0a\x09\x0a\x01p\x1a\x01n\x2a\x01u"; /* name, namespace, uid */
	const size_t n = ELEMENT_MAX - 16, head = sizeof(meta_bytes) - 1;
	uint8_t *data = calloc(1, head + 4 + n);
	uint8_t *status = data + head;

	(void)state;
	assert_non_null(data);
	memcpy(data, meta_bytes, head);
	status[0] = 0x1a;
	status[1] = (uint8_t)(n & 0x7f) | 0x80;
	status[2] = (uint8_t)(n >> 7 & 0x7f) | 0x80;
	status[3] = (uint8_t)(n >> 14);
	for (size_t i = 0; i + 1 < n; i += 2)
		status[4 + i] = 0x42; /* container_statuses, empty */
	assert_int_equal(pods_take(&pods, data, head + 4 + n), 0);
	assert_int_equal(pods.unreadable, 1);
	assert_int_equal(pods_take(&pods, data, head), 0);
	assert_int_equal(pods.unreadable, 1);
	assert_int_equal(pods.list.n, 1);
	free(data);
}

static void cuts_names_and_mends_them(void **state)
{
	Kubelet__ObjectMeta m = meta();
	Kubelet__Pod pod = KUBELET__POD__INIT;
	char name[1000];

	(void)state;
	memset(name, 'x', sizeof(name));
	memcpy(name, "\xff\xc3\xa4", 3);
	name[sizeof(name) - 1] = '\0';
	m.name = name;
	pod.metadata = &m;
	take(&pod);
	assert_int_equal(strlen(owner_at(0)->pod), sizeof(owner_at(0)->pod) - 1);
	assert_memory_equal(owner_at(0)->pod, "?\xc3\xa4x", 4);
}

static void counts_rows_beyond_its_limit(void **state)
{
	Kubelet__ObjectMeta m = meta();
	Kubelet__Pod pod = KUBELET__POD__INIT;

	(void)state;
	pod.metadata = &m;
	for (unsigned i = 0; i < OWNERS_MAX + 3; i++)
		take(&pod);
	assert_int_equal(pods.owners.n, OWNERS_MAX);
	assert_int_equal(pods.owners.dropped, 3);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_containers_of_all_kinds), CASE(tells_health_of_gpus),
		CASE(names_containers_of_all_kinds), CASE(refuses_ids_that_are_none),
		CASE(names_the_controller),          CASE(knows_static_pods_by_their_hash),
		CASE(names_the_controller),          CASE(takes_no_uid_of_another_pod),
		CASE(knows_which_have_ended),        CASE(counts_what_it_cannot_read),
		CASE(bounds_what_a_pod_becomes),     CASE(cuts_names_and_mends_them),
		CASE(counts_rows_beyond_its_limit),
	};

	return cmocka_run_group_tests_name("pods", tests, NULL, NULL);
}
