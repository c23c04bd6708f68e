// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kube/node_pods.h"
#include "model/health.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static struct node_pods pods;
static struct json_reader *reader;

static void begin_with(const char *labels, const char *selector)
{
	struct selector *parsed = NULL;
	char error[64];

	if (*selector)
		assert_int_equal(selector_new(selector, error, sizeof(error), &parsed), 0);
	assert_int_equal(node_pods_init(&pods, labels, parsed), 0);
	assert_int_equal(json_reader_new(&node_pod_ops, &pods, &reader), 0);
	assert_int_equal(json_reader_add(reader, "", node_pod_paths, node_pod_paths_n), 0);
}

static int end(void **state)
{
	(void)state;
	json_reader_free(reader);
	reader = NULL;
	node_pods_done(&pods);
	clock_freeze(false);
	return 0;
}

static void take(const char *text)
{
	assert_int_equal(json_reader_reset(reader), 0);
	node_pods_object_begins(&pods);
	assert_int_equal(json_feed(reader, text, strlen(text)), 0);
	node_pods_object_ended(false, &pods);
}

#define META "\"uid\":\"u1\",\"name\":\"train-0\",\"namespace\":\"ml\""

static void reads_a_pod(void **state)
{
	(void)state;
	begin_with("team, app", "gpu=yes");
	take("{\"metadata\":{" META ",\"labels\":{\"app\":\"a\",\"gpu\":\"yes\",\"team\":\"\"},"
	     "\"ownerReferences\":[{\"kind\":\"X\",\"name\":\"x\",\"uid\":\"9\"},{\"apiVersion\":\"apps/v1\","
	     "\"kind\":\"ReplicaSet\",\"name\":\"train\",\"uid\":\"7\",\"controller\":true}]},"
	     "\"status\":{\"phase\":\"Running\",\"podIP\":\"fd00::1\",\"conditions\":[{\"type\":\"Ready\","
	     "\"status\":\"True\"},{\"type\":\"Other\",\"status\":\"False\"}],"
	     "\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://" HEX "0\"},"
	     "{\"name\":\"waits\",\"containerID\":\"\"},{\"name\":\"odd\",\"containerID\":\"docker://xyz\"}],"
	     "\"initContainerStatuses\":[{\"name\":\"side\",\"containerID\":\"" HEX "1\"}]}}");
	assert_int_equal(pods.n, 1);
	assert_string_equal(pods.list[0]->owner.kind, "ReplicaSet");
	assert_string_equal(pods.list[0]->label, "a");
	assert_true(pods.list[0]->selected);
	assert_true(pods.list[0]->ready);
	assert_true(pods.list[0]->running);
	assert_string_equal(pods.list[0]->address, "fd00::1");
	assert_int_equal(pods.list[0]->containers_n, 2);
	assert_string_equal(pods.list[0]->containers[0].id, HEX "0");
	assert_string_equal(pods.list[0]->containers[1].name, "side");
}

/* "The first present and not empty": in the order of the configuration, not of the pod. */
static void the_first_label_decides(void **state)
{
	(void)state;
	begin_with("b,a", "");
	take("{\"metadata\":{" META ",\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}");
	assert_string_equal(pods.list[0]->label, "2");
	take("{\"metadata\":{" META ",\"labels\":{\"b\":\"2\",\"a\":\"1\"}}}");
	assert_string_equal(pods.list[0]->label, "2");
	take("{\"metadata\":{" META ",\"labels\":{\"b\":\"\",\"a\":\"1\"}}}");
	assert_string_equal(pods.list[0]->label, "1");
	assert_false(pods.list[0]->selected);
}

static void a_label_or_annotation_names_the_run(void **state)
{
	static const struct {
		const char *run, *group, *run_is, *group_is;
	} cases[] = {
		{ "label:a", "annotation:a", "1", "3" }, { "b", "annotation:c", "2", "" },
		{ "annotation:b", "label:a", "", "1" },  { "a", "b", "1", "2" },
		{ "labels:a", "annotatio:a", "", "" },   { "", "", "", "" },
	};

	(void)state;
	begin_with("", "");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		node_pods_name(&pods, cases[i].run, cases[i].group, NULL);
		take("{\"metadata\":{" META ",\"labels\":{\"a\":\"1\",\"b\":\"2\"},"
		     "\"annotations\":{\"a\":\"3\",\"c\":7}}}");
		assert_string_equal(pods.list[0]->run, cases[i].run_is);
		assert_string_equal(pods.list[0]->group, cases[i].group_is);
	}
}

static void its_status_tells_health(void **state)
{
	const struct pod_device *devices;

	(void)state;
	begin_with("", "");
	node_pods_name(&pods, "", "", "example.com/card");
	take("{\"metadata\":{" META "},\"status\":{\"containerStatuses\":[{\"name\":\"main\","
	     "\"allocatedResourcesStatus\":[{\"name\":\"nvidia.com/gpu\",\"resources\":["
	     "{\"resourceID\":\"GPU-1\",\"health\":\"Unhealthy\"},{\"resourceID\":\"GPU-2\"}]},"
	     "{\"name\":\"example.com/nic\",\"resources\":[{\"resourceID\":\"3\",\"health\":\"Healthy\"}]}"
	     "]}],\"initContainerStatuses\":[{\"name\":\"side\",\"allocatedResourcesStatus\":["
	     "{\"name\":\"example.com/card\",\"resources\":[{\"health\":\"Healthy\","
	     "\"resourceID\":\"GPU-3\"}]}]}]}}");
	devices = pods.list[0]->devices;
	assert_string_equal(devices[0].id, "GPU-1");
	assert_int_equal(devices[0].health, HEALTH_BAD);
	assert_string_equal(devices[1].id, "GPU-2");
	assert_int_equal(devices[1].health, HEALTH_UNKNOWN);
	assert_string_equal(devices[2].id, "GPU-3");
	assert_int_equal(devices[2].health, HEALTH_GOOD);
	assert_string_equal(devices[3].id, "");
}

static void the_same_pod_again_is_no_change(void **state)
{
	uint64_t changes;

	(void)state;
	begin_with("", "");
	take("{\"metadata\":{" META "}}");
	changes = pods.changes;
	take("{\"metadata\":{" META ",\"annotations\":{\"x\":\"y\"}}}");
	assert_int_equal(pods.changes, changes);
	take("{\"metadata\":{" META ",\"annotations\":{\"kubernetes.io/config.hash\":\"h\","
	     "\"kubernetes.io/config.mirror\":\"h\"}}}");
	assert_int_equal(pods.changes, changes + 1);
	assert_string_equal(pods.list[0]->static_uid, "h");
}

/* Else any pod could say that it is another one. */
static void only_a_copy_has_another_uid(void **state)
{
	static const char *const annotations[] = {
		"\"kubernetes.io/config.hash\":\"h\"",
		"\"kubernetes.io/config.hash\":\"h\",\"kubernetes.io/config.mirror\":\"other\"",
		"\"kubernetes.io/config.mirror\":\"h\"",
	};
	char text[256];

	(void)state;
	begin_with("", "");
	for (size_t i = 0; i < ARRAY_SIZE(annotations); i++) {
		snprintf(text, sizeof(text), "{\"metadata\":{" META ",\"annotations\":{%s}}}",
			 annotations[i]);
		take(text);
		assert_string_equal(pods.list[0]->static_uid, "");
	}
}

static void what_is_gone_stays_for_a_minute(void **state)
{
	(void)state;
	clock_freeze(true);
	begin_with("", "");
	node_pods_list_begins(&pods);
	take("{\"metadata\":{" META "}}");
	node_pods_list_ended(&pods);
	assert_int_equal(pods.list[0]->gone_ns, 0);
	/* Another list is without it. */
	node_pods_list_begins(&pods);
	node_pods_list_ended(&pods);
	assert_true(pods.list[0]->gone_ns != 0);
	clock_advance(59 * NSEC_PER_SEC);
	node_pods_forget(&pods, clock_mono_ns());
	assert_int_equal(pods.n, 1);
	clock_advance(NSEC_PER_SEC);
	node_pods_forget(&pods, clock_mono_ns());
	assert_int_equal(pods.n, 0);
}

static void what_cannot_be_a_pod_is_counted(void **state)
{
	(void)state;
	begin_with("", "");
	take("{\"metadata\":{\"uid\":\"u\",\"name\":\"n\"}}");
	take("{\"metadata\":{\"uid\":\"u\",\"name\":\"n\",\"namespace\":\"a\\u0000b\"}}");
	take("{}");
	assert_int_equal(pods.unreadable, 3);
	assert_int_equal(pods.n, 0);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_a_pod),
		TEST(the_first_label_decides),
		TEST(a_label_or_annotation_names_the_run),
		TEST(its_status_tells_health),
		TEST(the_same_pod_again_is_no_change),
		TEST(only_a_copy_has_another_uid),
		TEST(what_is_gone_stays_for_a_minute),
		TEST(what_cannot_be_a_pod_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
