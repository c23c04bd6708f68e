// SPDX-License-Identifier: Apache-2.0
/* Which devices are allowed: those that a place was given, not those that it made nodes of itself. */
#include "../needs.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "devcgroup/devcgroup.h"

enum { PID = 7 };

/* A machine's folders: /dev and /proc/7/root/dev. */
struct machine {
	char root[32], proc[64], dev[64];
	struct devcgroup_host host;
	struct drivers drivers;
	struct nodes *nodes;
	struct place place;
	struct wanted_devices *wanted;
	struct devcgroup_why *why;
};

static void path_of(const struct machine *m, const char *name, char ret_path[static 128])
{
	snprintf(ret_path, 128, "%s/%s", m->root, name);
}

static void make_folder(const struct machine *m, const char *name)
{
	char path[128];

	path_of(m, name, path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_node(const struct machine *m, const char *name, unsigned major, unsigned minor)
{
	char path[128];

	path_of(m, name, path);
	if (mknod(path, S_IFCHR | 0600, makedev(major, minor)) < 0) {
		snprintf(path, sizeof(path), "rm -r %s", m->root);
		assert_int_equal(system(path), 0);
		need_unmet("nodes cannot be made here");
	}
}

/* As a mount shows the machine's own node. */
static void give(const struct machine *m, const char *name)
{
	char from[128], to[128], below[64];

	snprintf(below, sizeof(below), "dev/%s", name);
	path_of(m, below, from);
	snprintf(below, sizeof(below), "proc/%d/root/dev/%s", PID, name);
	path_of(m, below, to);
	assert_int_equal(link(from, to), 0);
}

static void begin(struct machine *m)
{
	static const char devices[] = "Character devices:\n195 nvidia\n195 nvidiactl\n237 nvidia-uvm\n"
				      "235 nvidia-caps\n";
	static const char *const folders[] = { "dev", "proc", "proc/7", "proc/7/root", "proc/7/root/dev" };

	*m = (struct machine){ .place = PLACE_NONE };
	strcpy(m->root, "/tmp/test-wanted.XXXXXX");
	assert_non_null(mkdtemp(m->root));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		make_folder(m, folders[i]);
	snprintf(m->proc, sizeof(m->proc), "%s/proc", m->root);
	snprintf(m->dev, sizeof(m->dev), "%s/dev", m->root);
	m->host = (struct devcgroup_host){ .proc = m->proc, .devices = "", .dev = m->dev, .cgroups = "" };
	drivers_parse(devices, strlen(devices), &m->drivers);
	m->nodes = calloc(1, sizeof(*m->nodes));
	m->wanted = calloc(1, sizeof(*m->wanted));
	m->why = calloc(1, sizeof(*m->why));
	m->place.pid = PID;
	make_node(m, "dev/nvidia0", 195, 0);
	make_node(m, "dev/nvidia1", 195, 1);
}

static void end(struct machine *m)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", m->root);
	assert_int_equal(system(command), 0);
	place_done(&m->place);
	free(m->nodes);
	free(m->wanted);
	free(m->why);
}

static int ask(struct machine *m)
{
	nodes_read(&m->host, &m->drivers, 0, m->nodes);
	return wanted_given(&m->host, &m->place, &m->drivers, m->nodes, m->wanted, m->why);
}

/* What no program can do without, and nothing of another GPU. */
static void assert_control(const struct machine *m)
{
	assert_true(wanted_has(m->wanted, 195, 255));
	assert_true(wanted_has(m->wanted, 195, 254));
	assert_true(wanted_has(m->wanted, 237, 0));
	assert_true(wanted_has(m->wanted, 237, 1));
	assert_false(wanted_has(m->wanted, 237, 2));
	assert_false(wanted_has(m->wanted, 235, 0));
	assert_false(wanted_has(m->wanted, 195, 2));
}

static void nodes_that_it_made_itself_do_not_count(_unused_ void **state)
{
	struct machine m;

	begin(&m);
	give(&m, "nvidia0");
	make_node(&m, "proc/7/root/dev/nvidia1", 195, 1);
	make_node(&m, "proc/7/root/dev/nvidia-caps1", 235, 1);
	assert_int_equal(ask(&m), 0);
	assert_true(wanted_has(m.wanted, 195, 0));
	assert_false(wanted_has(m.wanted, 195, 1));
	assert_int_equal(m.wanted->unproven, 2);
	assert_control(&m);
	end(&m);
}

static void with_such_nodes_alone_it_is_refused(_unused_ void **state)
{
	struct machine m;

	begin(&m);
	assert_int_equal(ask(&m), -ENODATA);
	assert_non_null(strstr(m.why->text, "has no node of NVIDIA"));
	make_node(&m, "proc/7/root/dev/nvidia1", 195, 1);
	assert_int_equal(ask(&m), -ENODATA);
	assert_non_null(strstr(m.why->text, "nvidia1"));
	assert_non_null(strstr(m.why->text, "--devices"));
	end(&m);
}

static void what_cannot_be_known_is_refused(_unused_ void **state)
{
	struct machine m;

	begin(&m);
	m.place.pid = PID + 1;
	assert_int_equal(ask(&m), -ENODATA);
	assert_non_null(strstr(m.why->text, "cannot be read"));
	m.place.pid = 0; /* a cgroup without a process */
	assert_int_equal(ask(&m), -ENODATA);
	assert_non_null(strstr(m.why->text, "no process of its own is in cgroup"));
	assert_non_null(strstr(m.why->text, "--devices"));
	end(&m);
}

static void make_link(const struct machine *m, const char *name, const char *to)
{
	char path[128];

	path_of(m, name, path);
	unlink(path);
	assert_int_equal(symlink(to, path), 0);
}

/* The cgroup's processes: 8, which sees all that this machine has, and 7, a container's. */
static void name_cgroup(struct machine *m, const char *pids)
{
	static const char *const folders[] = { "cgroup", "proc/7/ns", "proc/8", "proc/8/ns", "proc/8/root" };
	char path[128];
	FILE *file;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		make_folder(m, folders[i]);
	make_link(m, "proc/7/ns/mnt", "mnt:[7]");
	make_link(m, "proc/7/exe", "/bin/sleep");
	make_link(m, "proc/8/ns/mnt", "mnt:[8]");
	make_folder(m, "proc/8/root/dev");
	for (unsigned i = 0; i < 2; i++) {
		char from[128], to[128], name[32];

		snprintf(name, sizeof(name), "dev/nvidia%u", i);
		path_of(m, name, from);
		snprintf(name, sizeof(name), "proc/8/root/dev/nvidia%u", i);
		path_of(m, name, to);
		assert_int_equal(link(from, to), 0);
	}
	path_of(m, "cgroup/cgroup.procs", path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(pids, file);
	fclose(file);
	path_of(m, "cgroup", path);
	m->place.pid = 0;
	m->place.at[HIERARCHY_V2].fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void of_several_processes_what_all_see_counts(_unused_ void **state)
{
	static const char *const programs[] = { "/bin/sleep", "/usr/bin/runc",
						"/memfd:runc_cloned:/proc/self/exe (deleted)" };
	struct machine m;

	begin(&m);
	give(&m, "nvidia0");
	name_cgroup(&m, "8\n7\n");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		make_link(&m, "proc/8/exe", programs[i]);
		assert_int_equal(ask(&m), 0);
		assert_true(wanted_has(m.wanted, 195, 0));
		assert_false(wanted_has(m.wanted, 195, 1));
	}
	end(&m);
}

static void what_a_runtime_sees_says_nothing(_unused_ void **state)
{
	struct machine m;

	begin(&m);
	name_cgroup(&m, "8\n");
	make_link(&m, "proc/8/exe", "/usr/sbin/runc");
	assert_int_equal(ask(&m), -ENODATA);
	assert_non_null(strstr(m.why->text, "no process of its own"));
	make_link(&m, "proc/8/exe", "/bin/sleep");
	assert_int_equal(ask(&m), 0);
	assert_true(wanted_has(m.wanted, 195, 1));
	end(&m);
}

/* A process in a root of its own choice, whose /dev is a link: followed by us, it leads to this machine's. */
static void a_link_to_our_nodes_gives_nothing(_unused_ void **state)
{
	char path[128];
	struct machine m;

	begin(&m);
	path_of(&m, "proc/7/root/dev", path);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(m.dev, path), 0);
	assert_int_equal(ask(&m), -ENODATA);
	assert_false(m.nodes->there_known);
	assert_int_equal(unlink(path), 0);
	/* Nor do links within it. */
	make_folder(&m, "proc/7/root/dev");
	path_of(&m, "proc/7/root/dev/nvidia0", path);
	assert_int_equal(symlink("/dev/nvidia0", path), 0);
	path_of(&m, "proc/7/root/dev/nvidia-all", path);
	assert_int_equal(symlink(m.dev, path), 0);
	assert_int_equal(ask(&m), -ENODATA);
	end(&m);
}

static void devices_are_named_as_this_machine_names_them(_unused_ void **state)
{
	struct machine m;

	begin(&m);
	make_node(&m, "proc/7/root/dev/nvidia9", 195, 5);
	nodes_read(&m.host, &m.drivers, PID, m.nodes);
	assert_int_equal(wanted_named("nvidia1", &m.drivers, m.nodes, m.wanted, m.why), 0);
	assert_true(wanted_has(m.wanted, 195, 1));
	assert_false(wanted_has(m.wanted, 195, 0));
	assert_control(&m);
	assert_int_equal(wanted_named("/dev/nvidia1,nvidia0", &m.drivers, m.nodes, m.wanted, m.why), 0);
	assert_true(wanted_has(m.wanted, 195, 0) && wanted_has(m.wanted, 195, 1));
	/* A name that the process chose. */
	assert_int_equal(wanted_named("nvidia9", &m.drivers, m.nodes, m.wanted, m.why), -ENOENT);
	assert_non_null(strstr(m.why->text, "\"nvidia9\""));
	assert_int_equal(wanted_named("", &m.drivers, m.nodes, m.wanted, m.why), -ENOENT);
	assert_int_equal(wanted_named("nvidia1,,nvidia0", &m.drivers, m.nodes, m.wanted, m.why), -ENOENT);
	assert_int_equal(wanted_named("all", &m.drivers, m.nodes, m.wanted, m.why), 0);
	assert_true(wanted_has(m.wanted, 195, 77) && wanted_has(m.wanted, 235, 5));
	assert_int_equal(m.wanted->n, 3);
	end(&m);
}

static void there_is_a_limit(_unused_ void **state)
{
	struct wanted_devices wanted = { .n = 0 };

	for (uint32_t i = 0; i < WANTED_MAX; i++)
		assert_int_equal(wanted_add(&wanted, 195, i), 0);
	assert_int_equal(wanted_add(&wanted, 195, 3), 0);
	assert_int_equal(wanted_add(&wanted, 195, WANTED_MAX), -E2BIG);
	assert_int_equal(wanted.n, WANTED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_that_it_made_itself_do_not_count),
		cmocka_unit_test(with_such_nodes_alone_it_is_refused),
		cmocka_unit_test(what_cannot_be_known_is_refused),
		cmocka_unit_test(of_several_processes_what_all_see_counts),
		cmocka_unit_test(what_a_runtime_sees_says_nothing),
		cmocka_unit_test(a_link_to_our_nodes_gives_nothing),
		cmocka_unit_test(devices_are_named_as_this_machine_names_them),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
