// SPDX-License-Identifier: Apache-2.0
/* Each row: what is known of a process of a node of four GPUs, and which of them it was given. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/private.h"

#define ID "c1"
#define POD "11111111-2222-3333-4444-555555555555"

static struct pipeline pipeline;
static struct entity entities[8];
static struct allocated allocated[8];
static struct snapshot snapshot = { .entities = entities, .allocated = allocated };

/* Minor numbers are the indexes backwards. The last GPU has two instances. */
static const struct cuda_device devices[] = {
	{ .uuid = "GPU-a", .minor = 3 },
	{ .uuid = "GPU-b", .minor = 2 },
	{ .uuid = "GPU-c", .minor = 1 },
	{ .uuid = "GPU-d", .minor = 0 },
};
static const struct cuda_device mixed[] = {
	{ .uuid = "GPU-a", .minor = 0 },
	{ .uuid = "GPU-b", .minor = 1, .mig = true },
	{ .uuid = "MIG-1", .parent = "GPU-b", .minor = UINT32_MAX, .gi = 7, .number = UINT32_MAX },
	{ .uuid = "MIG-2", .parent = "GPU-b", .minor = UINT32_MAX, .gi = 9, .number = UINT32_MAX },
};

static int begin(void **state)
{
	(void)state;
	memset(&pipeline, 0, sizeof(pipeline));
	memcpy(pipeline.devices, devices, sizeof(devices));
	pipeline.devices_n = 4;
	memset(&snapshot.sources, 0, sizeof(snapshot.sources));
	snapshot.allocated_n = 0;
	return cuda_new(&(struct cuda_limits){ 0 }, &(struct cuda_ops){ 0 }, NULL, &pipeline.cuda);
}

static int end(void **state)
{
	(void)state;
	pipeline_limits_done(&pipeline);
	cuda_free(pipeline.cuda);
	return 0;
}

static void give(enum workload_kind kind, const char *id, const char *uuid)
{
	uint32_t i = snapshot.allocated_n++;

	entities[i] = (struct entity){ .id.parent = READING_NONE };
	strcpy(entities[i].id.uuid, uuid);
	allocated[i] = (struct allocated){ .kind = kind, .entity = (uint16_t)i };
	strcpy(allocated[i].id, id);
	pipeline_set_limits(&pipeline, &snapshot);
}

static struct proc_identity container(void)
{
	return (struct proc_identity){ .cgroup = {
					       .kind = PROC_CGROUP_CONTAINER, .id = ID, .pod_uid = POD } };
}

/*
 * Last letters of the devices, with a ~ before an estimate, and a ? if more may become known; or the error in
 * words. @text: variables with a
 * newline after each.
 */
static const char *found_for(const struct proc_identity *identity, const char *text)
{
	static char uuids[8][TRACED_UUID], said[32];
	char *to = said;
	char environment[512];
	size_t n = strlen(text), found = 0;
	int r;

	for (size_t i = 0; i <= n; i++)
		environment[i] = (char)(text[i] == '\n' ? 0 : text[i]);
	r = limits_allow(&pipeline, identity, environment, n, uuids, 8, &found);
	memset(said, 0, sizeof(said));
	if (r == CUDA_ALLOWED_GUESSED)
		*to++ = '?';
	else if (r == CUDA_ALLOWED_GIVEN)
		*to++ = '~';
	for (size_t i = 0; r >= 0 && i < found; i++)
		*to++ = uuids[i][strlen(uuids[i]) - 1];
	if (r >= 0)
		return said;
	return r == -ENOENT ? "all" : r == -ENODATA ? "assumed" : r == -ENXIO ? "unknown" : "?";
}

static const char *found(const char *text)
{
	const struct proc_identity identity = container();

	return found_for(&identity, text);
}

static void what_is_in_no_container_has_all(void **state)
{
	struct proc_identity identity = { 0 };

	(void)state;
	assert_string_equal(found_for(&identity, "NVIDIA_VISIBLE_DEVICES=0\n/dev=0\n"), "all");
	identity.cgroup.kind = PROC_CGROUP_UNIT;
	assert_string_equal(found_for(&identity, "NVIDIA_VISIBLE_DEVICES=0\n/dev=0\n"), "all");
}

static void by_the_variable(void **state)
{
	static const struct {
		const char *value, *found;
	} rows[] = {
		{ "all", "assumed" },  { "", "unknown" },
		{ "none", "?" },       { "void", "unknown" },
		{ "2", "?c" },         { "3,0", "?da" },
		{ "GPU-b", "?b" },     { "GPU-b,GPU-b", "?b" },
		{ "9", "?" },          { "/var/run/nvidia-container-devices", "unknown" },
		{ "0,junk,1", "?ab" }, { "nvidia.com/gpu=1", "?b" },
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "NVIDIA_VISIBLE_DEVICES=%s\n", rows[i].value);
		assert_string_equal(found(text), rows[i].found);
	}
	memcpy(pipeline.devices, mixed, sizeof(mixed));
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=1:1\n"), "?2");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=MIG-1\n"), "?1");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=MIG-GPU-b/9/0\n"), "?2");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=0:0\n"), "?");
}

/* The beginning of a UUID is one that only one device has. */
static void what_may_be_any_of_several_is_not_known(void **state)
{
	(void)state;
	strcpy(pipeline.devices[0].uuid, "GPU-11a");
	strcpy(pipeline.devices[1].uuid, "GPU-12b");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=GPU-11\n"), "?a");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=GPU-1\n"), "unknown");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=3,GPU-1\n"), "unknown");
}

static void what_was_given_is_more_than_the_variable(void **state)
{
	(void)state;
	give(WORKLOAD_CONTAINER, "other", "GPU-a");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=all\n"), "assumed");
	give(WORKLOAD_CONTAINER, ID, "GPU-c");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=all\n"), "~c");
	assert_string_equal(found("NVIDIA_VISIBLE_DEVICES=void\n"), "~c");
	assert_string_equal(found(""), "~c");
	/* And its pod's. */
	give(WORKLOAD_POD, POD, "GPU-d");
	give(WORKLOAD_POD, "other", "GPU-b");
	assert_string_equal(found(""), "~cd");
}

static void what_was_given_has_nodes(void **state)
{
	(void)state;
	assert_string_equal(found("/dev=2\n"), "b");
	assert_string_equal(found("/dev=0,3\nNVIDIA_VISIBLE_DEVICES=all\n"), "ad");
	give(WORKLOAD_CONTAINER, ID, "GPU-c");
	assert_string_equal(found("/dev=1\n"), "c");
	/* A node that the container has made does not open another GPU. */
	assert_string_equal(found("/dev=1,2\n"), "c");
	/* What it has no node of, or what is no GPU of CUDA's, it does not see. */
	give(WORKLOAD_CONTAINER, ID, "GPU-d");
	give(WORKLOAD_CONTAINER, ID, "GPU-gone");
	assert_string_equal(found("/dev=0,2,3\n"), "d");
	assert_string_equal(found("/dev=0,1,3\n"), "cd");
}

static void nodes_that_contradict_what_was_given_tell_nothing(void **state)
{
	(void)state;
	give(WORKLOAD_CONTAINER, ID, "GPU-c");
	assert_string_equal(found("/dev=2\n"), "~c");
	/* All of them: a privileged container's, which may be kept from others all the same. */
	assert_string_equal(found("/dev=0,1,2,3\n"), "~c");
	/* None, or none of the node's. */
	assert_string_equal(found("/dev=\n"), "~c");
	assert_string_equal(found("/dev=77\n"), "~c");
	/* Nodes of GPUs say nothing of instances. */
	memcpy(pipeline.devices, mixed, sizeof(mixed));
	assert_string_equal(found("/dev=1\n"), "~c");
	memcpy(pipeline.devices, devices, sizeof(devices));
	give(WORKLOAD_CONTAINER, ID, "GPU-a");
	give(WORKLOAD_CONTAINER, ID, "GPU-b");
	give(WORKLOAD_CONTAINER, ID, "GPU-d");
	assert_string_equal(found("/dev=0,1,2,3\n"), "cabd");
}

static void all_nodes_are_all_devices(void **state)
{
	(void)state;
	assert_string_equal(found("/dev=0,1,2,3\nNVIDIA_VISIBLE_DEVICES=0\n"), "all");
}

static void nothing_known_is_an_estimate(void **state)
{
	(void)state;
	assert_string_equal(found(""), "assumed");
	assert_string_equal(found("CUDA_VISIBLE_DEVICES=0\n"), "assumed");
}

/* Until the runtimes' files have been read after the process began. */
static void what_may_soon_be_known_is_not_guessed(void **state)
{
	struct proc_identity identity = container();

	(void)state;
	identity.id.start_ticks = process_ticks(50000000000);
	snapshot.sources[SOURCE_FILES] = (struct source){ .in_use = true, .heard_ns = 40000000000 };
	pipeline_set_limits(&pipeline, &snapshot);
	assert_string_equal(found_for(&identity, ""), "unknown");
	snapshot.sources[SOURCE_FILES].heard_ns = 60000000000;
	pipeline_set_limits(&pipeline, &snapshot);
	assert_string_equal(found_for(&identity, ""), "assumed");
	/* A document of an agent has no such time. */
	snapshot.sources[SOURCE_FILES].heard_ns = 0;
	pipeline_set_limits(&pipeline, &snapshot);
	assert_string_equal(found_for(&identity, ""), "assumed");
}

/* Slurm's jobs: with ConstrainDevices indexes count within the job's devices. */
static void jobs(void **state)
{
	const struct proc_identity identity = { .cgroup = { .kind = PROC_CGROUP_JOB, .id = "42" } };

	(void)state;
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0\n"), "all");
	give(WORKLOAD_JOB, "42", "GPU-c");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0\n"), "c");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=2\n"), "unknown");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=GPU-c\n"), "all");
	assert_string_equal(found_for(&identity, ""), "unknown");
}

static void jobs_with_the_first_devices(void **state)
{
	const struct proc_identity identity = { .cgroup = { .kind = PROC_CGROUP_JOB, .id = "42" } };

	(void)state;
	give(WORKLOAD_JOB, "42", "GPU-a");
	give(WORKLOAD_JOB, "42", "GPU-b");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0,1\n"), "all");
	give(WORKLOAD_JOB, "42", "GPU-d");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0,1\n"), "all");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=2\n"), "abd");
}

/* A process of the job may have chosen what it says: nothing that follows from it is certain. */
static void what_a_job_claims_is_an_estimate(void **state)
{
	const struct proc_identity identity = { .cgroup = { .kind = PROC_CGROUP_JOB, .id = "42" } };

	(void)state;
	give(WORKLOAD_JOB, "42", "GPU-c");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0\n"), "c");
	allocated[0].claimed = true;
	pipeline_set_limits(&pipeline, &snapshot);
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=0\n"), "~c");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=GPU-c\n"), "assumed");
	assert_string_equal(found_for(&identity, "CUDA_VISIBLE_DEVICES=2\n"), "unknown");
}

#define CASE(test_) cmocka_unit_test_setup_teardown(test_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_in_no_container_has_all),
		CASE(by_the_variable),
		CASE(what_was_given_is_more_than_the_variable),
		CASE(what_may_be_any_of_several_is_not_known),
		CASE(what_was_given_has_nodes),
		CASE(nodes_that_contradict_what_was_given_tell_nothing),
		CASE(all_nodes_are_all_devices),
		CASE(nothing_known_is_an_estimate),
		CASE(what_may_soon_be_known_is_not_guessed),
		CASE(jobs),
		CASE(jobs_with_the_first_devices),
		CASE(what_a_job_claims_is_an_estimate),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
