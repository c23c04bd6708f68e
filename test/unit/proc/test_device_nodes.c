// SPDX-License-Identifier: Apache-2.0
/* A folder stands for /proc: PID/root/dev is made up. Real nodes only root can make. */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/device_nodes.h"

static char root[64], text[512];
static size_t n;

static const char *below(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/7/%s", root, name);
	return path;
}

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/nodes.XXXXXX");
	return mkdtemp(root) && mkdir(below(""), 0700) == 0 && mkdir(below("root"), 0700) == 0 ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static int find(size_t size)
{
	int r;

	NEED_CALL(openat2);
	r = proc_device_nodes(root, 7, text, size, &n);

	text[r == 0 ? n : 0] = '\0';
	return r;
}

static void make_file(const char *name)
{
	int fd = open(below(name), O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void only_devices_count(void **state)
{
	(void)state;
	assert_int_equal(mkdir(below("root/dev"), 0700), 0);
	make_file("root/dev/nvidia0");
	assert_int_equal(symlink("/dev/null", below("root/dev/nvidia1")), 0);
	assert_int_equal(mkdir(below("root/dev/nvidia2"), 0700), 0);
	assert_int_equal(mkfifo(below("root/dev/nvidia3"), 0600), 0);
	assert_int_equal(find(sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void node(const char *name, unsigned major_number, unsigned minor_number)
{
	if (mknod(below(name), S_IFCHR | 0600, makedev(major_number, minor_number)) < 0)
		skip(); /* not root, or not allowed to make devices */
}

static void devices_by_their_minor_numbers(void **state)
{
	(void)state;
	assert_int_equal(mkdir(below("root/dev"), 0700), 0);
	node("root/dev/nvidia0", 195, 10); /* the name is the container's */
	node("root/dev/nvidia2", 195, 2);
	node("root/dev/nvidia3", 1, 3);
	node("root/dev/nvidia254", 195, 254);
	node("root/dev/nvidiactl", 195, 255);
	node("root/dev/nvidia4x", 195, 4);
	node("root/dev/xnvidia5", 195, 5);
	assert_int_equal(find(sizeof(text)), 0);
	assert_string_equal(text, "2,10");
	assert_int_equal(find(4), -E2BIG);
}

/* The folder is another's to make: links lead nowhere. */
static void follows_no_link(void **state)
{
	(void)state;
	assert_int_equal(symlink("/dev", below("root/dev")), 0);
	assert_int_equal(find(sizeof(text)), -ELOOP);
	unlink(below("root/dev"));
	assert_int_equal(symlink("..", below("root/dev")), 0);
	assert_true(find(sizeof(text)) < 0);
}

static void what_is_missing(void **state)
{
	(void)state;
	assert_int_equal(find(sizeof(text)), -ENOENT);
	make_file("root/dev");
	assert_int_equal(find(sizeof(text)), -ENOTDIR);
	assert_int_equal(proc_device_nodes(root, 8, text, sizeof(text), &n), -ESRCH);
}

static void too_many_entries(void **state)
{
	char name[64];

	(void)state;
	assert_int_equal(mkdir(below("root/dev"), 0700), 0);
	for (unsigned i = 0; i < 8200; i++) {
		snprintf(name, sizeof(name), "root/dev/%u", i);
		assert_int_equal(symlink("x", below(name)), 0);
	}
	assert_int_equal(find(sizeof(text)), -E2BIG);
}

#define CASE(test_) cmocka_unit_test_setup_teardown(test_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(only_devices_count), CASE(devices_by_their_minor_numbers),
		CASE(follows_no_link),    CASE(what_is_missing),
		CASE(too_many_entries),
	};

	return cmocka_run_group_tests_name("device_nodes", tests, NULL, NULL);
}
