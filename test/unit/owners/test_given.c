// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "owners/given.h"

#define UUID "GPU-955ef018-3bd9-5f27-80b3-fa20ee8d19c5"
#define MIG "MIG-11111111-3bd9-5f27-80b3-fa20ee8d19c5"
#define HOOK                                                                             \
	"\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"," \
	"\"args\":[\"x\",\"prestart\"]}]}"
#define ENV(value_) "\"process\":{\"env\":[\"PATH=/bin\",\"NVIDIA_VISIBLE_DEVICES=" value_ "\"]}"
#define NODE(minor_) "{\"path\":\"/dev/nvidia\",\"type\":\"c\",\"major\":195,\"minor\":" #minor_ "}"
#define CONTROL                                                                     \
	"{\"path\":\"/dev/nvidiactl\",\"type\":\"c\",\"major\":195,\"minor\":255}," \
	"{\"path\":\"/dev/nvidia-uvm\",\"major\":510,\"minor\":0}"

#define NULL_MOUNT(at_)                                                  \
	"{\"destination\":\"/var/run/nvidia-container-devices" at_ "\"," \
	"\"source\":\"/dev/null\"}"
#define MOUNTED "/var/run/nvidia-container-devices"
#define OTHER_MOUNT "{\"destination\":\"/proc\"}"
#define PRIVILEGES "\"capabilities\":{\"bounding\":[\"CAP_CHOWN\",\"CAP_SYS_ADMIN\"]}"

static struct given given;
static struct given_by by;

static int begin(void **state)
{
	(void)state;
	by = (struct given_by){ .toolkit = { .known = true, .variable = true, .mounts = true } };
	return 0;
}

static void bundle(const char *json)
{
	if (given_by_bundle(json, strlen(json), &by, &given) != 0)
		fail_msg("refused: %s", json);
}

static void docker(const char *host, const char *config)
{
	if (given_by_docker(host, strlen(host), config, strlen(config), &by, &given) != 0)
		fail_msg("refused: %s", host);
}

static void nothing(const char *json)
{
	bundle(json);
	if (given.n != 0)
		fail_msg("%u devices: %s", given.n, json);
}

static void one(enum device_ref_kind kind, uint32_t index, const char *uuid, const char *resource)
{
	assert_int_equal(given.n, 1);
	assert_int_equal(given.list[0].kind, kind);
	assert_int_equal(given.list[0].index, index);
	assert_string_equal(given.list[0].uuid, uuid);
	assert_string_equal(given.resource, resource);
}

static void a_hook_gives_what_the_variable_says(void **state)
{
	(void)state;
	bundle("{" HOOK "," ENV("all") "}");
	one(DEVICE_ALL, DEVICE_REF_NO, "", "NVIDIA_VISIBLE_DEVICES");
	bundle("{" HOOK "," ENV("2") "}");
	one(DEVICE_BY_INDEX, 2, "", "NVIDIA_VISIBLE_DEVICES");
	bundle("{" HOOK "," ENV(UUID) "}");
	one(DEVICE_BY_UUID, DEVICE_REF_NO, UUID, "NVIDIA_VISIBLE_DEVICES");
	bundle("{" HOOK "," ENV("3:1") "}");
	one(DEVICE_BY_INDEX, 3, "", "NVIDIA_VISIBLE_DEVICES");
	assert_int_equal(given.list[0].mig, 1);
	bundle("{" HOOK "," ENV("0,5," MIG ",") "}");
	assert_int_equal(given.n, 3);
	assert_int_equal(given.list[1].index, 5);
	assert_string_equal(given.list[2].uuid, MIG);
	assert_int_equal(given.dropped, 0);
	/* What means no device is counted, and the others stay. */
	bundle("{" HOOK "," ENV("0,some") "}");
	one(DEVICE_BY_INDEX, 0, "", "NVIDIA_VISIBLE_DEVICES");
	assert_int_equal(given.dropped, 1);
}

static void nothing_is_given(void **state)
{
	(void)state;
	nothing("{" HOOK "," ENV("") "}");
	nothing("{" HOOK "," ENV("void") "}");
	nothing("{" HOOK "," ENV("none") "}");
	nothing("{" HOOK "}");
	nothing("{}");
	/* The image's wish alone. */
	nothing("{" ENV("all") "}");
	nothing("{" ENV("0") ",\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/other\"}]}}");
	nothing("{" ENV("0") ",\"linux\":{\"devices\":[" CONTROL "]}}");
	/* Annotations that nobody has followed. */
	nothing("{\"annotations\":{\"cdi.k8s.io/x\":\"nvidia.com/gpu=" UUID "\"}}");
}

static void an_old_image_of_cuda_gets_all(void **state)
{
	(void)state;
	bundle("{" HOOK ",\"process\":{\"env\":[\"CUDA_VERSION=8.0\"]}}");
	one(DEVICE_ALL, DEVICE_REF_NO, "", "NVIDIA_VISIBLE_DEVICES");
	nothing("{" HOOK ",\"process\":{\"env\":[\"CUDA_VERSION=12.0\","
		"\"NVIDIA_REQUIRE_CUDA=cuda>=12\"]}}");
}

static void mounts_name_devices(void **state)
{
	(void)state;
	bundle("{" HOOK "," ENV(MOUNTED) ",\"mounts\":[" OTHER_MOUNT "," NULL_MOUNT("/" UUID "/") "]}");
	one(DEVICE_BY_UUID, DEVICE_REF_NO, UUID, "/var/run/nvidia-container-devices");
	bundle("{" HOOK ",\"mounts\":[" NULL_MOUNT("/cdi/nvidia.com/gpu/4") "]}");
	one(DEVICE_BY_INDEX, 4, "", "/var/run/nvidia-container-devices");
	bundle("{" HOOK ",\"mounts\":[" NULL_MOUNT("/cdi/nvidia.com/gpu=4") "]}");
	one(DEVICE_BY_INDEX, 4, "", "/var/run/nvidia-container-devices");
	assert_false(given.estimated);
	/* Channels of IMEX, the folder itself, mounts of anything else. */
	nothing("{" HOOK ",\"mounts\":[" NULL_MOUNT("/imex/0") "," NULL_MOUNT("") "," NULL_MOUNT("/") "]}");
	nothing("{" HOOK ",\"mounts\":[{\"destination\":\"/var/run/nvidia-container-devices/" UUID "\"}]}");
	nothing("{" HOOK ",\"mounts\":[{\"destination\":\"/var/run/nvidia-container-devices/" UUID
		"\",\"source\":\"/dev/zero\"}]}");
	assert_int_equal(given.dropped, 0);
}

/* What the toolkit's configuration lets its hook follow. */
static void the_toolkit_may_not_follow(void **state)
{
	static const char config[] = "{\"Config\":{\"Env\":[\"NVIDIA_VISIBLE_DEVICES=1\"]}}";

	(void)state;
	by.toolkit = (struct toolkit){ .known = true };
	nothing("{" HOOK ",\"mounts\":[" NULL_MOUNT("/4") "]}");
	nothing("{" HOOK "," ENV("2") "}");
	nothing("{" HOOK ",\"process\":{\"env\":[\"CUDA_VERSION=8.0\"]}}");
	docker("{\"Runtime\":\"nvidia\",\"CapAdd\":[\"NET_ADMIN\",1]}", config);
	assert_int_equal(given.n, 0);
	/* Of a privileged container it always follows the variable. */
	bundle("{" HOOK ",\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=2\"]," PRIVILEGES "}}");
	one(DEVICE_BY_INDEX, 2, "", "NVIDIA_VISIBLE_DEVICES");
	bundle("{" HOOK ",\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=2\"],"
	       "\"capabilities\":[\"CAP_SYS_ADMIN\"]}}");
	one(DEVICE_BY_INDEX, 2, "", "NVIDIA_VISIBLE_DEVICES");
	docker("{\"Runtime\":\"nvidia\",\"CapAdd\":[\"SYS_ADMIN\"]}", config);
	one(DEVICE_BY_INDEX, 1, "", "NVIDIA_VISIBLE_DEVICES");
	docker("{\"Runtime\":\"nvidia\",\"Privileged\":true}", config);
	one(DEVICE_BY_INDEX, 1, "", "NVIDIA_VISIBLE_DEVICES");
}

/* Its configuration is not at hand. */
static void what_the_toolkit_may_not_follow_is_an_estimate(void **state)
{
	(void)state;
	by.toolkit = toolkit_unknown;
	bundle("{" HOOK ",\"mounts\":[" NULL_MOUNT("/4") "]}");
	one(DEVICE_BY_INDEX, 4, "", "/var/run/nvidia-container-devices");
	assert_true(given.estimated);
	bundle("{" HOOK "," ENV("2") "}");
	one(DEVICE_BY_INDEX, 2, "", "NVIDIA_VISIBLE_DEVICES");
	assert_true(given.estimated);
	bundle("{" HOOK ",\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=2\"]," PRIVILEGES "}}");
	assert_false(given.estimated);
	bundle("{\"linux\":{\"devices\":[" NODE(2) "]}}");
	assert_false(given.estimated);
}

static void nodes_are_devices_by_minor_number(void **state)
{
	(void)state;
	bundle("{" ENV("void") ",\"linux\":{\"devices\":[" CONTROL "," NODE(2) "]}}");
	one(DEVICE_BY_MINOR, 2, "", "devices");
	/* They say more than a variable. */
	bundle("{" HOOK "," ENV("all") ",\"linux\":{\"devices\":[" NODE(2) "," NODE(0) "]}}");
	assert_int_equal(given.n, 2);
	assert_int_equal(given.list[0].index, 0);
	assert_int_equal(given.list[1].index, 2);
	/* An instance that the driver's list does not have is not the GPU. */
	bundle("{\"linux\":{\"devices\":[" NODE(
		2) ",{\"path\":\"/dev/nvidia-caps/nvidia-cap66\",\"major\":237,\"minor\":66}]}}");
	assert_int_equal(given.n, 0);
	assert_int_equal(given.dropped, 1);
}

static void a_privileged_container_was_not_given_its_nodes(void **state)
{
	(void)state;
	nothing("{\"linux\":{\"devices\":[" NODE(
		0) "],\"resources\":{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}}}");
	bundle("{" HOOK "," ENV("1") ",\"linux\":{\"devices\":[" NODE(
		0) "],\"resources\":{\"devices\":[{\"allow\":true}]}}}");
	one(DEVICE_BY_INDEX, 1, "", "NVIDIA_VISIBLE_DEVICES");
	bundle("{\"linux\":{\"devices\":[" NODE(
		0) "],\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},"
		   "{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":0}]}}}");
	one(DEVICE_BY_MINOR, 0, "", "devices");
}

/* Annotations may be a pod's user's. */
static void nodes_decide_and_annotations_say_what_was_asked_for(void **state)
{
	(void)state;
	bundle("{\"annotations\":{\"cdi.k8s.io/nvidia-device-plugin_1\":\"k8s."
	       "device-plugin.nvidia.com/gpu=" UUID "\","
	       "\"io.kubernetes.cri.sandbox-uid\":\"11111111-2222-3333-4444-555555555555\"},"
	       "\"linux\":{\"devices\":[" NODE(6) "]}}");
	one(DEVICE_BY_MINOR, 6, "", "k8s.device-plugin.nvidia.com/gpu");
	assert_false(given.estimated);
	assert_string_equal(given.pod_uid, "11111111-2222-3333-4444-555555555555");
	/* Those of others do not. */
	bundle("{\"annotations\":{\"cdi.k8s.io/net\":\"vendor.com/net=eth7\"},"
	       "\"linux\":{\"devices\":[" NODE(6) "]}}");
	one(DEVICE_BY_MINOR, 6, "", "devices");
	/* Neither do fewer than there are nodes. */
	bundle("{\"annotations\":{\"cdi.k8s.io/a\":\"nvidia.com/gpu=" UUID
	       "\"},\"linux\":{\"devices\":[" NODE(6) "," NODE(7) "]}}");
	assert_int_equal(given.n, 2);
	assert_int_equal(given.list[1].index, 7);
	assert_string_equal(given.resource, "devices");
	/* Nor more. */
	bundle("{\"annotations\":{\"cdi.k8s.io/a\":\"nvidia.com/gpu=1,nvidia.com/gpu=2\"},"
	       "\"linux\":{\"devices\":[" NODE(6) "]}}");
	one(DEVICE_BY_MINOR, 6, "", "devices");
	bundle("{\"annotations\":{\"cdi.k8s.io/a\":\"nvidia.com/gpu=all\"},"
	       "\"linux\":{\"devices\":[" NODE(6) "]}}");
	one(DEVICE_BY_MINOR, 6, "", "nvidia.com/gpu");
	/* Where the nodes tell nothing, since the driver's list does not have them. */
	bundle("{\"annotations\":{\"cdi.k8s.io/a\":\"nvidia.com/gpu=" MIG "\"},\"linux\":{\"devices\":[" NODE(
		2) ",{\"path\":\"/dev/nvidia-caps/nvidia-cap66\",\"major\":237,\"minor\":66}]}}");
	one(DEVICE_BY_UUID, DEVICE_REF_NO, MIG, "nvidia.com/gpu");
	assert_true(given.estimated);
}

static void specifications_tell_what_a_name_means(void **state)
{
	static const char spec[] =
		"{\"cdiVersion\":\"0.5.0\",\"kind\":\"k8s.gpu.nvidia.com/device\",\"devices\":["
		"{\"name\":\"gpu-4\","
		"\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia9\"}]}}]}";

	struct cdi *cdi;

	(void)state;
	assert_int_equal(cdi_new(&cdi), 0);
	by.cdi = cdi;
	assert_int_equal(cdi_add(cdi, spec, sizeof(spec) - 1, NULL), 0);
	docker("{\"DeviceRequests\":[{\"Driver\":\"cdi\",\"Count\":0,\"DeviceIDs\":"
	       "[\"k8s.gpu.nvidia.com/device=gpu-4\"]}]}",
	       "{}");
	one(DEVICE_BY_MINOR, 9, "", "k8s.gpu.nvidia.com/device");
	cdi_free(cdi);
}

static void requests_of_docker(void **state)
{
	(void)state;
	/* --gpus all */
	docker("{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,\"DeviceIDs\":null,"
	       "\"Capabilities\":[[\"gpu\"]],\"Options\":{}}]}",
	       "{}");
	one(DEVICE_ALL, DEVICE_REF_NO, "", "DeviceRequests");
	/* --gpus 2 */
	docker("{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":2,\"Capabilities\":"
	       "[[\"gpu\"]]}]}",
	       "{}");
	assert_int_equal(given.n, 2);
	assert_int_equal(given.list[1].kind, DEVICE_BY_INDEX);
	assert_int_equal(given.list[1].index, 1);
	/* --gpus device=... */
	docker("{\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":0,\"DeviceIDs\":[\"" UUID
	       "\",\"3\"]}]}",
	       "{}");
	assert_int_equal(given.n, 2);
	assert_int_equal(given.list[1].index, 3);
	/* --device nvidia.com/gpu=1 */
	docker("{\"DeviceRequests\":[{\"Driver\":\"cdi\",\"DeviceIDs\":"
	       "[\"nvidia.com/gpu=1\"]}]}",
	       "{}");
	one(DEVICE_BY_INDEX, 1, "", "nvidia.com/gpu");
	/* those of others, and none */
	docker("{\"DeviceRequests\":[{\"Driver\":\"amd\",\"Count\":-1,\"Capabilities\":"
	       "[[\"gpu\"]]}]}",
	       "{}");
	assert_int_equal(given.n, 0);
	docker("{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,\"Capabilities\":"
	       "[[\"tpu\"]]}]}",
	       "{}");
	assert_int_equal(given.n, 0);
	docker("{\"DeviceRequests\":null}", "{}");
	assert_int_equal(given.n, 0);
	docker("{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":9223372036854775807,"
	       "\"Capabilities\":[[\"gpu\"]]}]}",
	       "{}");
	assert_int_equal(given.n, GIVEN_MAX);
	assert_int_equal(given.dropped, UINT32_MAX - GIVEN_MAX);
	docker("{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":70,\"Capabilities\":[[\"gpu\"]]}]}", "{}");
	assert_int_equal(given.n, GIVEN_MAX);
	assert_int_equal(given.dropped, 70 - GIVEN_MAX);
}

static void other_ways_of_docker(void **state)
{
	static const char config[] = "{\"Config\":{\"Env\":[\"NVIDIA_VISIBLE_DEVICES=1,2\"]}}";

	(void)state;
	docker("{\"Runtime\":\"nvidia\"}", config);
	assert_int_equal(given.n, 2);
	assert_string_equal(given.resource, "NVIDIA_VISIBLE_DEVICES");
	docker("{\"Runtime\":\"runc\"}", config);
	assert_int_equal(given.n, 0);
	docker("{\"Runtime\":\"runc\",\"Devices\":[{\"PathOnHost\":\"/dev/nvidia5\","
	       "\"PathInContainer\":\"/dev/nvidia0\"}]}",
	       config);
	one(DEVICE_BY_MINOR, 5, "", "devices");
}

static void first_process_of_docker(void **state)
{
	static const char running[] = "{\"State\":{\"Running\":true,\"Pid\":77}}",
			  over[] = "{\"State\":{\"Running\":false,\"Pid\":77}}";

	(void)state;
	assert_int_equal(docker_init(running, sizeof(running) - 1), 77);
	assert_int_equal(docker_init(over, sizeof(over) - 1), 0);
	assert_int_equal(docker_init("{}", 2), 0);
	assert_int_equal(docker_init("", 0), 0);
}

static void what_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = { "", "[]", "1", "{", "null", "\xff" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(given_by_bundle(texts[i], strlen(texts[i]), &by, &given), -EBADMSG);
		assert_int_equal(given_by_docker(texts[i], strlen(texts[i]), "{}", 2, &by, &given), -EBADMSG);
		assert_int_equal(given_by_docker("{}", 2, texts[i], strlen(texts[i]), &by, &given), -EBADMSG);
	}
	/* Members of other kinds tell nothing. */
	nothing("{\"hooks\":[],\"process\":[1],\"linux\":\"x\",\"annotations\":1,\"mounts\":{}}");
	nothing("{" HOOK ",\"process\":{\"env\":[1,null]},\"mounts\":[1,{\"destination\":2}],"
		"\"linux\":{\"devices\":[3]}}");
}

static void too_many_are_counted(void **state)
{
	char json[4096] = "{" HOOK ",\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=0";

	(void)state;
	for (unsigned i = 1; i < GIVEN_MAX + 10; i++)
		snprintf(json + strlen(json), sizeof(json) - strlen(json), ",%u", i);
	strcat(json, "\"]}}");
	bundle(json);
	assert_int_equal(given.n, GIVEN_MAX);
	assert_int_equal(given.dropped, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_hook_gives_what_the_variable_says, begin),
		cmocka_unit_test_setup(nothing_is_given, begin),
		cmocka_unit_test_setup(an_old_image_of_cuda_gets_all, begin),
		cmocka_unit_test_setup(mounts_name_devices, begin),
		cmocka_unit_test_setup(the_toolkit_may_not_follow, begin),
		cmocka_unit_test_setup(what_the_toolkit_may_not_follow_is_an_estimate, begin),
		cmocka_unit_test_setup(nodes_are_devices_by_minor_number, begin),
		cmocka_unit_test_setup(a_privileged_container_was_not_given_its_nodes, begin),
		cmocka_unit_test_setup(nodes_decide_and_annotations_say_what_was_asked_for, begin),
		cmocka_unit_test_setup(specifications_tell_what_a_name_means, begin),
		cmocka_unit_test_setup(requests_of_docker, begin),
		cmocka_unit_test_setup(other_ways_of_docker, begin),
		cmocka_unit_test_setup(first_process_of_docker, begin),
		cmocka_unit_test_setup(what_is_no_object_is_refused, begin),
		cmocka_unit_test_setup(too_many_are_counted, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
