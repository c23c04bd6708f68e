// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/tables.h"

/* Pods without owners: nobody is asked for anything. */
static struct access nobody;
static struct client *client;
static struct walk *walk;
static struct tables tables;
static struct node_pod pod[3];
static struct node_pod *list[3] = { &pod[0], &pod[1], &pod[2] };

static int begin(void **state)
{
	(void)state;
	memset(pod, 0, sizeof(pod));
	for (unsigned i = 0; i < 3; i++) {
		snprintf(pod[i].uid, sizeof(pod[i].uid), "u%u", i);
		snprintf(pod[i].name, sizeof(pod[i].name), "p%u", i);
		snprintf(pod[i].namespace, sizeof(pod[i].namespace), "ml");
		pod[i].selected = pod[i].running = pod[i].ready = true;
	}
	tables_init(&tables);
	tables.exporter_namespaces = "ml";
	return client_new(&nobody, &client) < 0 || walk_new(client, 4, &walk) < 0;
}

static int end(void **state)
{
	(void)state;
	walk_free(walk);
	client_free(client);
	tables_done(&tables);
	return 0;
}

static void make(uint32_t n)
{
	const struct node_pods pods = { .list = list, .n = n };

	tables_make(&tables, &pods, walk, 1);
}

/* The name of the pod that the UID stands for; NULL: none. */
static const char *name_of(const char *uid)
{
	const struct row_list *rows = &tables.list[KUBE_OWNERS];
	const struct owner *owners = rows->list;
	const char *name = NULL;

	for (uint32_t i = 0; i < rows->n; i++) {
		if (strcmp(owners[i].id, uid) != 0)
			continue;
		assert_null(name);
		name = owners[i].pod;
	}
	return name;
}

static void a_static_pod_has_two_uids(void **state)
{
	(void)state;
	snprintf(pod[0].static_uid, sizeof(pod[0].static_uid), "hash");
	make(2);
	assert_string_equal(name_of("u0"), "p0");
	assert_string_equal(name_of("hash"), "p0");
	/* Its copy was made anew, and the one before is still known. */
	snprintf(pod[1].static_uid, sizeof(pod[1].static_uid), "hash");
	snprintf(pod[1].name, sizeof(pod[1].name), "p0");
	make(2);
	assert_int_equal(tables.list[KUBE_OWNERS].n, 4);
}

static void nobody_takes_anothers_uid(void **state)
{
	(void)state;
	snprintf(pod[0].static_uid, sizeof(pod[0].static_uid), "u1");
	make(3);
	assert_string_equal(name_of("u1"), "p1");
	/* Of two that claim one it is not known whose it is. */
	snprintf(pod[0].static_uid, sizeof(pod[0].static_uid), "hash");
	snprintf(pod[2].static_uid, sizeof(pod[2].static_uid), "hash");
	make(3);
	assert_null(name_of("hash"));
}

static void exporters_have_addresses_of_pods(void **state)
{
	(void)state;
	snprintf(pod[0].address, sizeof(pod[0].address), "169.254.169.254");
	snprintf(pod[1].address, sizeof(pod[1].address), "http://10.0.0.1/x");
	snprintf(pod[2].address, sizeof(pod[2].address), "10.0.0.1");
	make(3);
	assert_int_equal(tables.list[KUBE_EXPORTERS].n, 1);
	assert_int_equal(tables.exporters_skipped, 2);
}

/* How many exporters are there with these namespaces. */
static uint32_t exporters_of(const char *namespaces)
{
	tables.exporter_namespaces = namespaces;
	make(3);
	assert_int_equal(tables.list[KUBE_EXPORTERS].n + tables.exporters_foreign, 3);
	return tables.list[KUBE_EXPORTERS].n;
}

/* A user who may make a pod somewhere may give it the labels of an exporter. */
static void exporters_are_of_namespaces_that_are_named(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		snprintf(pod[i].address, sizeof(pod[i].address), "10.0.0.%u", i + 1);
	snprintf(pod[1].namespace, sizeof(pod[1].namespace), "gpu-operator");
	snprintf(pod[2].namespace, sizeof(pod[2].namespace), "m");
	assert_int_equal(exporters_of(NULL), 0);
	assert_int_equal(exporters_of(""), 0);
	assert_int_equal(exporters_of("ml"), 1);
	assert_string_equal(tables.foreign, "m");
	assert_int_equal(exporters_of("gpu-operator , ml"), 2);
	assert_int_equal(exporters_of("gpu,mlx,,x"), 0);
	assert_int_equal(exporters_of("x,*"), 3);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_static_pod_has_two_uids),
		TEST(nobody_takes_anothers_uid),
		TEST(exporters_have_addresses_of_pods),
		TEST(exporters_are_of_namespaces_that_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
