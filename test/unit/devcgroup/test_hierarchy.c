// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devcgroup/hierarchy.h"

static void mounts_are_read(void **state)
{
	static const char v1[] =
		"36 31 0:33 / /sys/fs/cgroup/devices rw,relatime shared:9 - cgroup cgroup rw,devices";
	static const char both[] = "36 31 0:33 /docker/a\\040b /c rw - cgroup cgroup rw,cpu,devices";
	static const char v2[] = "41 31 0:38 /../.. /host/sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
	static const char *const bad[] = { "",
					   "36",
					   "36 31 0:33 / /x rw",
					   "36 31 0:33 / /x rw -",
					   "36 31 0:33 x /x rw - cgroup2 c rw",
					   "36 31 0:33 / x rw - cgroup2 c rw",
					   "36 31 0:33 / /x rw - cgroup2" };
	struct cgroup_mount m;

	(void)state;
	assert_int_equal(cgroup_mount_parse(v1, strlen(v1), &m), 0);
	assert_int_equal(m.hierarchy, HIERARCHY_V1);
	assert_string_equal(m.point, "/sys/fs/cgroup/devices");
	assert_int_equal(cgroup_mount_parse(both, strlen(both), &m), 0);
	assert_int_equal(m.hierarchy, HIERARCHY_V1);
	assert_string_equal(m.root, "/docker/a b");
	assert_int_equal(cgroup_mount_parse(v2, strlen(v2), &m), 0);
	assert_int_equal(m.hierarchy, HIERARCHY_V2);
	assert_string_equal(m.root, "/../..");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cgroup_mount_parse(bad[i], strlen(bad[i]), &m), -EBADMSG);
	assert_int_equal(cgroup_mount_parse("1 2 0:3 / /proc rw - proc proc rw", 33, &m), -ENOENT);
	assert_int_equal(cgroup_mount_parse("1 2 0:3 / /x rw - cgroup c rw,cpu", 33, &m), 0);
	assert_int_equal(m.hierarchy, HIERARCHIES);
}

static void the_path_of_a_process(void **state)
{
	static const char text[] =
		"12:cpu,cpuacct:/cpu\n5:devices:/docker/x:y\n1:name=systemd:/s\n0::/unified\n";
	char path[64];

	(void)state;
	assert_int_equal(cgroup_line_find(text, strlen(text), HIERARCHY_V1, path, sizeof(path)), 0);
	assert_string_equal(path, "/docker/x:y");
	assert_int_equal(cgroup_line_find(text, strlen(text), HIERARCHY_V2, path, sizeof(path)), 0);
	assert_string_equal(path, "/unified");
	assert_int_equal(cgroup_line_find("0::/x", 5, HIERARCHY_V1, path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_line_find("0::x", 4, HIERARCHY_V2, path, sizeof(path)), -EBADMSG);
	assert_int_equal(cgroup_line_find("0::/x", 5, HIERARCHY_V2, path, 2), -EBADMSG);
}

static void paths_below_a_mount(void **state)
{
	static const struct {
		const char *root, *path, *wanted;
		int r;
	} cases[] = {
		{ "/", "/a/b", "/a/b", 0 },
		{ "/", "/", "/", 0 },
		{ "/", "/a/../b", "/b", 0 },
		{ "/", "/../b", NULL, -EXDEV },
		{ "/", "/a/../../b", NULL, -EXDEV },
		{ "/docker/x", "/docker/x/y", "/y", 0 },
		{ "/docker/x", "/docker/x", "/", 0 },
		{ "/docker/x", "/docker/xy", NULL, -EXDEV },
		{ "/docker/x", "/other", NULL, -EXDEV },
	};
	struct cgroup_mounts *mounts = calloc(1, sizeof(*mounts));
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cgroup_mount m = { .hierarchy = HIERARCHY_V2 };

		strcpy(m.root, cases[i].root);
		assert_int_equal(cgroup_path_below(mounts, &m, cases[i].path, path), cases[i].r);
		if (cases[i].wanted)
			assert_string_equal(path, cases[i].wanted);
	}
	free(mounts);
}

struct tree {
	char root[32];
};

static void make(const struct tree *tree, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", tree->root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_tree(struct tree *tree)
{
	strcpy(tree->root, "/tmp/test-cgroup.XXXXXX");
	assert_non_null(mkdtemp(tree->root));
	make(tree, "a");
	make(tree, "a/b");
	make(tree, "a/b/c");
	make(tree, "x");
	make(tree, "x/c");
}

static void remove_tree(const struct tree *tree)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", tree->root);
	assert_int_equal(system(command), 0);
}

/* As a container sees the host's file system: its own root, /../.. of it, lies two levels below. */
static void a_namespaces_root_is_found_by_its_inode(void **state)
{
	struct cgroup_mounts *mounts = calloc(1, sizeof(*mounts));
	struct devcgroup_host host = { .cgroups = "" };
	const struct cgroup_mount *mount;
	char path[PATH_MAX];
	struct tree tree;

	(void)state;
	make_tree(&tree);
	mounts->n = 2;
	mounts->list[0].hierarchy = mounts->list[1].hierarchy = HIERARCHY_V2;
	strcpy(mounts->list[0].root, "/");
	snprintf(mounts->list[0].point, PATH_MAX, "%s/a/b", tree.root);
	strcpy(mounts->list[1].root, "/../..");
	strcpy(mounts->list[1].point, tree.root);
	mount = cgroup_mount_of(&host, mounts, HIERARCHY_V2);
	assert_ptr_equal(mount, &mounts->list[1]);
	assert_null(cgroup_mount_of(&host, mounts, HIERARCHY_V1));
	assert_int_equal(cgroup_path_below(mounts, mount, "/c", path), 0);
	assert_string_equal(path, "/a/b/c");
	assert_int_equal(cgroup_path_below(mounts, mount, "/../../x", path), 0);
	assert_string_equal(path, "/x");
	assert_int_equal(cgroup_path_below(mounts, mount, "/../../../x", path), -EXDEV);
	mounts->n = 1;
	assert_int_equal(cgroup_path_below(mounts, &mounts->list[1], "/c", path), 0);
	mounts->list[0].hierarchy = HIERARCHY_V1; /* our namespace's root is not known */
	assert_int_equal(cgroup_path_below(mounts, &mounts->list[1], "/c", path), -EXDEV);
	remove_tree(&tree);
	free(mounts);
}

static void paths_are_opened_component_by_component(void **state)
{
	char path[PATH_MAX], link[64];
	struct tree tree;
	int root, fd = -1;

	(void)state;
	make_tree(&tree);
	root = open(tree.root, O_RDONLY | O_DIRECTORY);
	snprintf(link, sizeof(link), "%s/link", tree.root);
	assert_int_equal(symlink("/etc", link), 0);
	assert_int_equal(cgroup_open(root, "//a/./b/", path, &fd), 0);
	assert_string_equal(path, "/a/b");
	close(fd);
	assert_int_equal(cgroup_open(root, "", path, &fd), 0);
	assert_string_equal(path, "/");
	close(fd);
	assert_int_equal(cgroup_open(root, "a/..", path, &fd), -EXDEV);
	assert_int_equal(cgroup_open(root, "..", path, &fd), -EXDEV);
	assert_int_equal(cgroup_open(root, "link", path, &fd), -ENOTDIR);
	assert_int_equal(cgroup_open(root, "link/ssh", path, &fd), -ENOTDIR);
	assert_int_equal(cgroup_open(root, "none", path, &fd), -ENOENT);
	close(root);
	remove_tree(&tree);
}

static void a_search_finds_all_of_a_name(void **state)
{
	const struct cgroup_search search = { .is = cgroup_has_name, .name = "c" };
	const struct cgroup_search none = { .is = cgroup_has_name, .name = "d" };
	char(*paths)[PATH_MAX] = calloc(1, sizeof(*paths));
	struct tree tree;
	int root;

	(void)state;
	make_tree(&tree);
	root = open(tree.root, O_RDONLY | O_DIRECTORY);
	assert_int_equal(cgroup_search(root, &search, paths, 1), 2);
	assert_true(STRV_EQ(paths[0], "/a/b/c") || STRV_EQ(paths[0], "/x/c"));
	assert_int_equal(cgroup_search(root, &none, paths, 1), 0);
	close(root);
	remove_tree(&tree);
	free(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_are_read),
		cmocka_unit_test(the_path_of_a_process),
		cmocka_unit_test(paths_below_a_mount),
		cmocka_unit_test(a_namespaces_root_is_found_by_its_inode),
		cmocka_unit_test(paths_are_opened_component_by_component),
		cmocka_unit_test(a_search_finds_all_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
