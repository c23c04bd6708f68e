// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devcgroup/devcgroup.h"

/* As of driver 580; names have no order. */
static const char devices[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"
			      "234 nvidia-caps-imex-channels\n235 nvidia-caps\n236 nvidia-nvswitch\n"
			      "237 nvidia-uvm\n999 xnvidia\n\nBlock devices:\n  8 sd\n 77 nvidia\n";

static void majors_of_nvidia_are_found(void **state)
{
	struct drivers drivers;
	uint32_t majors[DRIVERS_MAX];

	(void)state;
	drivers_parse(devices, strlen(devices), &drivers);
	assert_int_equal(drivers.n, 7);
	assert_int_equal(drivers_majors(&drivers, majors), 5);
	assert_string_equal(drivers_name(&drivers, 195), "nvidia");
	assert_string_equal(drivers_name(&drivers, 237), "nvidia-uvm");
	assert_null(drivers_name(&drivers, 1));
	assert_null(drivers_name(&drivers, 77));
	assert_null(drivers_name(&drivers, 999));
	drivers_parse("Character devices:\n195 nvidia-frontend", 38, &drivers);
	assert_string_equal(drivers_name(&drivers, 195), "nvidia-frontend");
}

static void too_many_are_counted(void **state)
{
	char text[4096] = "Character devices:\n";
	struct drivers drivers;

	(void)state;
	for (unsigned i = 0; i < DRIVERS_MAX + 3; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u nvidia-%u\n", 300 + i, i);
	drivers_parse(text, strlen(text), &drivers);
	assert_int_equal(drivers.n, DRIVERS_MAX);
	assert_int_equal(drivers.dropped, 3);
}

static void make_file(const char *root, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const struct node *find(const struct nodes *nodes, const char *name)
{
	for (unsigned i = 0; i < nodes->n; i++)
		if (STRV_EQ(nodes->list[i].name, name))
			return &nodes->list[i];
	return NULL;
}

/* Which device is where cannot be made up without rights; that it is wanted can. */
static void what_the_driver_has_is_wanted(void **state)
{
	char root[] = "/tmp/test-nodes.XXXXXX", command[64], list[64], dev[64];
	struct devcgroup_host host = { .proc = root, .devices = list, .dev = dev, .cgroups = "" };
	struct drivers drivers;
	struct nodes *nodes = calloc(1, sizeof(*nodes));
	unsigned rest = 0;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(list, sizeof(list), "%s/devices", root);
	snprintf(dev, sizeof(dev), "%s/dev", root);
	make_file(root, "devices", devices);
	make_file(root, "dev/nvidia0", "no device");
	make_file(root, "driver/nvidia/gpus/0000:01:00.0/information", "Model: X\nDevice Minor: \t 3\n");
	make_file(root, "driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: \t 255\n");
	make_file(root, "driver/nvidia/gpus/0000:03:00.0/information", "Model: X\n");
	assert_int_equal(drivers_read(&host, &drivers), 0);
	nodes_read(&host, &drivers, 0, nodes);
	assert_null(find(nodes, "nvidia0"));
	assert_true(find(nodes, "nvidiactl")->wanted);
	assert_false(find(nodes, "nvidiactl")->here);
	assert_true(find(nodes, "nvidia-uvm")->wanted);
	assert_int_equal(find(nodes, "nvidia3")->minor, 3);
	for (unsigned i = 0; i < nodes->n; i++)
		rest += nodes->list[i].minor == UINT32_MAX;
	assert_int_equal(nodes->n, 6);
	assert_int_equal(rest, 3); /* caps, imex, nvswitch */
	assert_true(node_matters(nodes, &nodes->list[0]));
	nodes->there_n = 1;
	assert_false(node_matters(nodes, &nodes->list[0]));
	nodes->list[0].there = true;
	assert_true(node_matters(nodes, &nodes->list[0]));
	nodes->given_n = 1; /* another one: this it may have made itself */
	assert_false(node_matters(nodes, &nodes->list[0]));
	nodes->list[0].given = true;
	assert_true(node_matters(nodes, &nodes->list[0]));
	make_file(root, "devices", "Character devices:\n  1 mem\n");
	assert_int_equal(drivers_read(&host, &drivers), -ENODEV);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(majors_of_nvidia_are_found),
		cmocka_unit_test(too_many_are_counted),
		cmocka_unit_test(what_the_driver_has_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
