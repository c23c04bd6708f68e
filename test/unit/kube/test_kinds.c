// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "kube/kinds.h"

static const struct kind_row *known(const char *api_version, const char *kind)
{
	struct owner_ref ref = { 0 };

	strcpy(ref.api_version, api_version);
	strcpy(ref.kind, kind);
	return kind_known(&ref);
}

static void kinds_belong_to_groups(void **state)
{
	(void)state;
	assert_true(known("apps/v1", "ReplicaSet")->lost);
	assert_true(known("batch/v1beta1", "Job")->lost);
	assert_false(known("apps/v1", "Deployment")->lost);
	assert_true(known("v1", "Node")->top);
	assert_string_equal(known("argoproj.io/v1alpha1", "Rollout")->plural, "rollouts");
	assert_null(known("v1", "ReplicaSet"));
	assert_null(known("example.com/v1", "Job"));
	assert_null(known("app/v1", "ReplicaSet"));
}

static enum kind_place find(struct kinds *kinds, const char *api_version, const char *kind, const char *name,
			    char path[256])
{
	struct owner_ref ref = { 0 };

	strcpy(ref.api_version, api_version);
	strcpy(ref.kind, kind);
	strcpy(ref.name, name);
	return kinds_find(kinds, &ref, "ml", 1, path, 256);
}

static void where_objects_are(void **state)
{
	struct access access = { 0 };
	_cleanup_(client_freep) struct client *client = NULL;
	_cleanup_(kinds_freep) struct kinds *kinds = NULL;
	char path[256];

	(void)state;
	assert_int_equal(client_new(&access, &client), 0);
	assert_int_equal(kinds_new(client, &kinds), 0);
	assert_int_equal(find(kinds, "apps/v1", "ReplicaSet", "train-1", path), KIND_FOUND);
	assert_string_equal(path, "/apis/apps/v1/namespaces/ml/replicasets/train-1");
	assert_int_equal(find(kinds, "v1", "ReplicationController", "a/../b", path), KIND_FOUND);
	assert_string_equal(path, "/api/v1/namespaces/ml/replicationcontrollers/a%2F..%2Fb");
	assert_int_equal(find(kinds, "apps/v1", "ReplicaSet", "..", path), KIND_MISSING);
	assert_int_equal(find(kinds, "apps/..", "ReplicaSet", "x", path), KIND_MISSING);
	assert_int_equal(find(kinds, "example.com/v1", "Train", "x", path), KIND_WANTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_belong_to_groups),
		cmocka_unit_test(where_objects_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
