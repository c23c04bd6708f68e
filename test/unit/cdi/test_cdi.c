// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cdi/cdi.h"

#define UUID "GPU-955ef018-3bd9-5f27-80b3-fa20ee8d19c5"
#define MIG "MIG-11111111-3bd9-5f27-80b3-fa20ee8d19c5"

/* As nvidia-ctk writes it. */
static const char toolkit[] = "---\n"
			      "cdiVersion: 0.5.0\n"
			      "containerEdits:\n"
			      "  deviceNodes:\n"
			      "  - path: /dev/nvidiactl\n"
			      "  env:\n"
			      "  - NVIDIA_VISIBLE_DEVICES=void\n"
			      "devices:\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia0\n"
			      "    - path: /dev/dri/card0\n"
			      "  name: \"0\"\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia3\n"
			      "      hostPath: /dev/nvidia1\n"
			      "  name: \"1\"\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia2\n"
			      "    - path: /dev/nvidia-caps/nvidia-cap66\n"
			      "    - path: /dev/nvidia-caps/nvidia-cap67\n"
			      "  name: \"2:0\"\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia-caps/nvidia-cap67\n"
			      "    - path: /dev/nvidia-caps/nvidia-cap66\n"
			      "    - path: /dev/nvidia2\n"
			      "  name: " MIG "\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia0\n"
			      "    - path: /dev/nvidia1\n"
			      "    - path: /dev/nvidia2\n"
			      "    - path: /dev/nvidia-caps/nvidia-cap66\n"
			      "  name: all\n"
			      "- containerEdits:\n"
			      "    deviceNodes:\n"
			      "    - path: /dev/nvidia0\n"
			      "  name: " UUID "\n"
			      "kind: nvidia.com/gpu\n";

/* As NVIDIA's DRA driver does: the devices, and for a claim what is added to one. */
#define DRA                                                                                        \
	"{\"cdiVersion\":\"0.7.0\",\"kind\":\"k8s.gpu.nvidia.com/device\",\"devices\":["           \
	"{\"name\":\"gpu-4\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia4\"}]}}," \
	"{\"name\":\"gpu-14\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia14\"}]}}]}"
#define CLAIM                                                                           \
	"{\"cdiVersion\":\"0.7.0\",\"kind\":\"k8s.gpu.nvidia.com/claim\",\"devices\":[" \
	"{\"name\":\"0c2-gpu-4\",\"containerEdits\":{\"env\":[\"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1\"]}}]}"

static struct cdi *cdi;
static char root[64];
static int root_fd;

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/cdi.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return cdi_new(&cdi);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	cdi_free(cdi);
	close(root_fd);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static int add(const char *text)
{
	return cdi_add(cdi, text, strlen(text), NULL);
}

static void make(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void is_uuid(const char *name, const char *uuid)
{
	uint32_t n;
	const struct device_ref *refs = cdi_find(cdi, name, &n);

	assert_non_null(refs);
	assert_int_equal(n, 1);
	assert_int_equal(refs->kind, DEVICE_BY_UUID);
	assert_int_equal(refs->gi, DEVICE_REF_NO);
	assert_string_equal(refs->uuid, uuid);
}

static void is_minor(const struct device_ref *refs, uint32_t n, uint32_t minor)
{
	assert_non_null(refs);
	assert_int_equal(n, 1);
	assert_int_equal(refs->kind, DEVICE_BY_MINOR);
	assert_int_equal(refs->index, minor);
}

static void devices_of_the_toolkit(void **state)
{
	const struct device_ref *refs;
	uint32_t n;

	(void)state;
	assert_int_equal(add(toolkit), 0);
	is_uuid("nvidia.com/gpu=" UUID, UUID);
	is_uuid("nvidia.com/gpu=0", UUID);
	is_uuid("nvidia.com/gpu=" MIG, MIG);
	is_uuid("nvidia.com/gpu=2:0", MIG);
	/* The node's name in the container is not the device's. */
	refs = cdi_find(cdi, "nvidia.com/gpu=1", &n);
	is_minor(refs, n, 1);
	refs = cdi_find(cdi, "nvidia.com/gpu=all", &n);
	assert_int_equal(n, 1);
	assert_int_equal(refs->kind, DEVICE_ALL);
	assert_null(cdi_find(cdi, "nvidia.com/gpu=9", &n));
	assert_null(cdi_find(cdi, "nvidia.com/gp", &n));
}

static void devices_of_dra(void **state)
{
	const struct device_ref *refs;
	uint32_t n;

	(void)state;
	assert_int_equal(add(DRA), 0);
	assert_int_equal(add(CLAIM), 0);
	refs = cdi_find(cdi, "k8s.gpu.nvidia.com/device=gpu-4", &n);
	is_minor(refs, n, 4);
	assert_non_null(cdi_find(cdi, "k8s.gpu.nvidia.com/claim=0c2-gpu-4", &n));
	assert_int_equal(n, 0);
	refs = cdi_find_claimed(cdi, "gpu.nvidia.com", "gpu-4", &n);
	is_minor(refs, n, 4);
	refs = cdi_find_claimed(cdi, "gpu.nvidia.com", "gpu-14", &n);
	is_minor(refs, n, 14);
	assert_null(cdi_find_claimed(cdi, "gpu.nvidia.com", "gpu-1", &n));
	assert_null(cdi_find_claimed(cdi, "gpu.nvidia.co", "gpu-4", &n));
	assert_null(cdi_find_claimed(cdi, "gpu.example.com", "gpu-4", &n));
}

static void json_with_tabs(void **state)
{
	static const char text[] = "{\n\t\"cdiVersion\": \"0.6.0\",\n\t\"kind\": \"a/b\",\n"
				   "\t\"devices\": [\n\t\t{\n\t\t\t\"name\": \"x\",\n"
				   "\t\t\t\"containerEdits\": {\n\t\t\t\t\"deviceNodes\": [ "
				   "{ \"path\": \"\\/dev\\/nvidia5\" } ]\n"
				   "\t\t\t}\n\t\t}\n\t]\n}\n";
	const struct device_ref *refs;
	uint32_t n;

	(void)state;
	assert_int_equal(add(text), 0);
	refs = cdi_find(cdi, "a/b=x", &n);
	is_minor(refs, n, 5);
}

static void what_is_no_specification_is_refused(void **state)
{
	static const char *const texts[] = { "",
					     "x",
					     "[]",
					     "kind: a/b",
					     "cdiVersion: 1\nkind: a/b",
					     "{\"cdiVersion\":",
					     "cdiVersion: 1\nkind: a/b\ndevices: x",
					     "\xff\xfe" };
	uint32_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(add(texts[i]), -EBADMSG);
	/* Devices of other shapes have no GPU. */
	assert_int_equal(
		add("cdiVersion: 1\nkind: a/b\ndevices: [x, {name: y, containerEdits: [1]}, {name: z, "
		    "containerEdits: {deviceNodes: {path: [1]}}}]"),
		0);
	assert_non_null(cdi_find(cdi, "a/b=y", &n));
	assert_int_equal(n, 0);
	assert_int_equal(cdi_dropped(cdi), 1);
}

static void reads_both_folders_again_when_they_change(void **state)
{
	const struct device_ref *refs;
	uint32_t n;

	(void)state;
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	assert_int_equal(cdi_read(cdi, root_fd), 0);
	make("etc/cdi/nvidia.yaml", toolkit);
	make("etc/cdi/other.txt", "nonsense");
	make("run/cdi/dra.json", DRA);
	mkdir(strcat(strcpy((char[128]){ 0 }, root), "/var"), 0700);
	assert_int_equal(symlinkat("/run", root_fd, "var/run"), 0);
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	assert_string_equal(cdi_error(cdi), "");
	is_uuid("nvidia.com/gpu=0", UUID);
	refs = cdi_find(cdi, "k8s.gpu.nvidia.com/device=gpu-4", &n);
	is_minor(refs, n, 4);
	assert_int_equal(cdi_read(cdi, root_fd), 0);
	/* A later folder's devices replace the earlier one's. */
	make("run/cdi/nvidia.json",
	     "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":[{\"name\":\"0\","
	     "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia7\"}]}}]}");
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	refs = cdi_find(cdi, "nvidia.com/gpu=0", &n);
	is_minor(refs, n, 7);
	unlinkat(root_fd, "run/cdi/nvidia.json", 0);
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	is_uuid("nvidia.com/gpu=0", UUID);
}

static void says_what_it_cannot_read(void **state)
{
	uint32_t n;

	(void)state;
	make("etc/cdi/a.yaml", "kind: [");
	make("etc/cdi/b.json", DRA);
	mkdirat(root_fd, "etc/cdi/c.yaml", 0700);
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	assert_string_equal(cdi_error(cdi), "/etc/cdi/a.yaml: Bad message");
	assert_non_null(cdi_find(cdi, "k8s.gpu.nvidia.com/device=gpu-4", &n));
	assert_int_equal(cdi_read(cdi, root_fd), 0);
	assert_string_equal(cdi_error(cdi), "/etc/cdi/a.yaml: Bad message");
}

static void instances_by_the_nodes_list(void **state)
{
	static const char text[] = "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a/b\",\"devices\":[{\"name\":\"0\","
				   "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia2\"},"
				   "{\"path\":\"/dev/nvidia-caps/nvidia-cap66\"}]}}]}";
	const struct device_ref *refs;
	uint32_t n;

	(void)state;
	make("proc/driver/nvidia-caps/mig-minors", "gpu2/gi9/access 66\n");
	make("etc/cdi/a.json", text);
	assert_int_equal(cdi_read(cdi, root_fd), 1);
	refs = cdi_find(cdi, "a/b=0", &n);
	is_minor(refs, n, 2);
	assert_int_equal(refs->gi, 9);
}

#define CASE(test_) cmocka_unit_test_setup_teardown(test_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(devices_of_the_toolkit),
		CASE(devices_of_dra),
		CASE(json_with_tabs),
		CASE(what_is_no_specification_is_refused),
		CASE(reads_both_folders_again_when_they_change),
		CASE(says_what_it_cannot_read),
		CASE(instances_by_the_nodes_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
