// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "owners/names.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void expect(const struct owner *owner, enum workload_kind kind, const char *id, const char *namespace,
		   const char *pod, const char *container)
{
	assert_int_equal(owner->workload, kind);
	assert_string_equal(owner->id, id);
	assert_string_equal(owner->namespace, namespace);
	assert_string_equal(owner->pod, pod);
	assert_string_equal(owner->container, container);
}

static void reads_names_of_log_links(void **state)
{
	struct owner owner;

	(void)state;
	assert_true(owner_of_log_link("train-0_ml_main-" ID ".log", &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "ml", "train-0", "main");
	assert_true(owner_of_log_link("a.b-c_kube-system_side-car-" ID ".log", &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "kube-system", "a.b-c", "side-car");
}

static void refuses_other_names_of_log_links(void **state)
{
	static const char *const names[] = {
		"",
		".log",
		ID ".log",
		"-" ID ".log",
		"pod_ns_-" ID ".log",
		"_ns_c-" ID ".log",
		"pod__c-" ID ".log",
		"pod_ns-" ID ".log",
		"pod_ns_c_d-" ID ".log",
		"pod_ns_c-" ID,
		"pod_ns_c" ID ".log",
		"pod_ns_c-0" ID ".log.gz",
		"pod_ns_c-X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.log",
		"pod_ns_c-123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.log",
	};
	struct owner owner;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (owner_of_log_link(names[i], &owner))
			fail_msg("taken: %s", names[i]);
}

static void cuts_names_to_their_size(void **state)
{
	char name[400], long_one[300];
	struct owner owner;

	(void)state;
	memset(long_one, 'n', sizeof(long_one));
	snprintf(name, sizeof(name), "p_%.200s_c-" ID ".log", long_one);
	assert_true(owner_of_log_link(name, &owner));
	assert_int_equal(strlen(owner.namespace), sizeof(owner.namespace) - 1);
	assert_string_equal(owner.container, "c");
}

static void reads_names_of_log_folders(void **state)
{
	struct owner owner;

	(void)state;
	assert_true(owner_of_log_folder("ml_train-0_11111111-2222-3333-4444-555555555555", &owner));
	expect(&owner, WORKLOAD_POD, "11111111-2222-3333-4444-555555555555", "ml", "train-0", "");
	/* A static pod's: the hash of its file, as in its cgroup. */
	assert_true(owner_of_log_folder("kube-system_etcd-n1_0123456789abcdef0123456789abcdef", &owner));
	expect(&owner, WORKLOAD_POD, "0123456789abcdef0123456789abcdef", "kube-system", "etcd-n1", "");
	assert_false(owner_of_log_folder("ml_train-0", &owner));
	assert_false(owner_of_log_folder("ml_train-0_", &owner));
	assert_false(owner_of_log_folder("ml_train_0_11111111", &owner));
}

static bool bundle(const char *json, struct owner *ret_owner)
{
	return owner_of_bundle(ID, json, strlen(json), ret_owner);
}

static void reads_annotations_of_bundles(void **state)
{
	struct owner owner;

	(void)state;
	assert_true(bundle("{\"annotations\":{\"io.kubernetes.cri.sandbox-namespace\":\"ml\","
			   "\"io.kubernetes.cri.sandbox-name\":\"train-0\","
			   "\"io.kubernetes.cri.container-name\":\"main\"}}",
			   &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "ml", "train-0", "main");
	/* A sandbox has no container name. */
	assert_true(bundle("{\"annotations\":{\"io.kubernetes.pod.namespace\":\"ml\","
			   "\"io.kubernetes.pod.name\":\"train-0\"}}",
			   &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "ml", "train-0", "");
	assert_false(bundle("{\"annotations\":{\"io.kubernetes.pod.name\":\"train-0\"}}", &owner));
	assert_false(bundle("{\"annotations\":[]}", &owner));
	assert_false(bundle("{\"ociVersion\":\"1.0.2\"}", &owner));
	assert_false(bundle("[", &owner));
	assert_false(bundle("", &owner));
}

static bool docker(const char *json, struct owner *ret_owner)
{
	return owner_of_docker(json, strlen(json), ret_owner);
}

static void reads_docker(void **state)
{
	struct owner owner;

	(void)state;
	assert_true(docker("{\"ID\":\"" ID "\",\"Name\":\"/trainer\",\"Config\":{\"Labels\":{}}}", &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "", "", "trainer");
	assert_true(docker("{\"ID\":\"" ID "\",\"Name\":\"/k8s_main_train-0_ml_u_0\",\"Config\":{\"Labels\":{"
			   "\"io.kubernetes.pod.namespace\":\"ml\",\"io.kubernetes.pod.name\":\"train-0\","
			   "\"io.kubernetes.container.name\":\"main\"}}}",
			   &owner));
	expect(&owner, WORKLOAD_CONTAINER, ID, "ml", "train-0", "main");
	assert_false(docker("{\"ID\":\"short\",\"Name\":\"/trainer\"}", &owner));
	assert_false(docker("{\"ID\":\"" ID "\"}", &owner));
	assert_false(docker("{\"ID\":\"" ID "\",\"Name\":\"/\"}", &owner));
	assert_false(docker("{\"ID\":7,\"Name\":[]}", &owner));
}

static struct owner listed[4];
static unsigned listed_n;

static void on_listed(const struct owner *owner, void *userdata)
{
	assert_ptr_equal(userdata, listed);
	assert_true(listed_n < 4);
	listed[listed_n++] = *owner;
}

static void reads_the_list_of_storage(void **state)
{
	static const char json[] =
		"[{\"id\":\"" ID "\",\"names\":[\"web\"]},"
		"{\"id\":\"" ID "\",\"names\":[\"k8s_main_train-0_ml_1111_0\"]},"
		"{\"id\":\"" ID "\",\"names\":[\"k8s_POD_train-0_ml_1111_0\"]},"
		"{\"id\":\"" ID "\",\"names\":[]},{\"id\":\"x\",\"names\":[\"y\"]},7,{\"names\":[\"z\"]}]";

	(void)state;
	assert_int_equal(owners_of_storage(json, strlen(json), on_listed, listed), 0);
	assert_int_equal(listed_n, 3);
	expect(&listed[0], WORKLOAD_CONTAINER, ID, "", "", "web");
	expect(&listed[1], WORKLOAD_CONTAINER, ID, "ml", "train-0", "main");
	expect(&listed[2], WORKLOAD_CONTAINER, ID, "ml", "train-0", "");
	assert_int_equal(owners_of_storage("{}", 2, on_listed, listed), -EBADMSG);
	assert_int_equal(owners_of_storage("[", 1, on_listed, listed), -EBADMSG);
	assert_int_equal(listed_n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_names_of_log_links),
		cmocka_unit_test(refuses_other_names_of_log_links),
		cmocka_unit_test(cuts_names_to_their_size),
		cmocka_unit_test(reads_names_of_log_folders),
		cmocka_unit_test(reads_annotations_of_bundles),
		cmocka_unit_test(reads_docker),
		cmocka_unit_test(reads_the_list_of_storage),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
