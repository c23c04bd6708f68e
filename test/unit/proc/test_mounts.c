// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../needs.h"
#include "base/fd.h"
#include "proc/mounts.h"

static char root[64];
static struct mounts *mounts;

static void make(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The machine's table, ours, and those of process 7 of a user and of process 8 of root. */
static int begin(void **state)
{
	char link[128];

	(void)state;
	strcpy(root, "/tmp/mounts.XXXXXX");
	assert_non_null(mkdtemp(root));
	make("1/mountinfo",
	     "20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
	     "21 20 0:30 / /home rw - nfs4 server:/home rw\n"
	     "22 20 0:31 / /srv/fuse rw - fuse.sshfs x rw,user_id=0\n"
	     "23 20 0:32 / /good\\040one rw - overlay overlay "
	     "rw,lowerdir=/var/a\\134:b:/var/b,upperdir=/var/u,workdir=/var/w\n"
	     "24 20 0:33 / /bad rw - overlay o rw,lowerdir=/var/a:/srv/fuse/x,upperdir=/var/u\n"
	     "25 20 0:34 / /bad2 rw - overlay o rw,lowerdir=/var/a,upperdir=/home/u\n"
	     "26 20 0:35 / /var/run/1/rootfs rw - overlay o rw,lowerdir=l/A:l/B,upperdir=1/diff,workdir=1/w\n"
	     "27 20 0:36 / /srv/fuse2 rw - overlay o rw,lowerdir+=/var/a,lowerdir+=/srv/fuse/y\n"
	     "28 20 0:37 / /empty rw - overlay o rw\n"
	     "29 20 0:38 / /comma rw - overlay o rw,lowerdir=/srv/fuse\\054x,upperdir=/var/u\n"
	     "30 20 0:39 / /srv/x rw - overlay o rw,lowerdir=fuse/a,upperdir=/var/u\n"
	     "31 20 0:40 / /home/u/fuse rw - fuse.sshfs x rw,user_id=1000,group_id=0\n");
	make("self/mountinfo", "40 1 0:50 / /tmp rw - tmpfs tmpfs rw\n"
			       "41 1 0:51 / / rw - overlay o rw,lowerdir=/var/lib/l,upperdir=/var/lib/u\n"
			       "42 41 0:52 / /run rw - fuse x rw\n"
			       "43 41 0:53 / /o rw - overlay o rw,lowerdir=/usr,upperdir=/u\n"
			       "44 41 0:54 / /p rw - overlay o rw,lowerdir=/run/l,upperdir=/u\n");
	make("7/mountinfo", "70 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
			    "71 1 0:60 / /mnt rw - fuse x rw\n"
			    "72 1 0:61 / /tmp rw - tmpfs x rw\n"
			    "73 1 0:62 / /o rw - overlay o rw,lowerdir=/usr,upperdir=/tmp/u\n"
			    "74 1 0:60 / /lie rw - ext4 x rw\n");
	make("8/mountinfo", "80 1 0:61 / /tmp rw - tmpfs x rw\n81 1 0:70 / /f rw - fuse x rw,user_id=0\n");
	make("7/ns/x", "");
	make("8/ns/x", "");
	snprintf(link, sizeof(link), "%s/7/ns/user", root);
	assert_int_equal(symlink("user:[7]", link), 0);
	/* The first one; 1 has none that could be read, as of a process that nobody may look into. */
	snprintf(link, sizeof(link), "%s/8/ns/user", root);
	assert_int_equal(symlink("user:[4026531837]", link), 0);
	assert_int_equal(mounts_new(root, &mounts), 0);
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	mounts_free(mounts);
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static const char *kind(int32_t pid, uint64_t id)
{
	static const char *const names[] = { "local", "network", "users" };
	static char text[128];
	struct mount_found found;

	mounts_find(mounts, pid, id, &found);
	snprintf(text, sizeof(text), "%s %s%s", names[found.kind], found.type,
		 found.path_by_root ? "" :
		 found.by_root      ? " at a user's path" :
				      " of a user");
	return text;
}

static void what_root_mounted(void **state)
{
	(void)state;
	assert_string_equal(kind(0, 20), "local ext4");
	assert_string_equal(kind(0, 40), "local tmpfs");
	assert_string_equal(kind(0, 21), "network nfs4");
	assert_string_equal(kind(0, 22), "users fuse.sshfs");
	assert_string_equal(kind(0, 31), "users fuse.sshfs of a user"); /* mounted with fusermount */
	assert_string_equal(kind(0, 99), "users  of a user");
}

static void an_overlay_is_as_good_as_its_layers(void **state)
{
	(void)state;
	assert_string_equal(kind(0, 23), "local overlay");
	assert_string_equal(kind(0, 24), "users overlay");
	assert_string_equal(kind(0, 25), "network overlay");
	assert_string_equal(kind(0, 26), "local overlay"); /* layers relative to a folder that is not said */
	assert_string_equal(kind(0, 27), "users overlay");
	assert_string_equal(kind(0, 28), "users overlay");
	assert_string_equal(kind(0, 29), "local overlay"); /* /srv/fuse,x is not below /srv/fuse */
	assert_string_equal(kind(0, 30), "users overlay"); /* its layer may be below /srv */
}

/* Of a container: its layers are folders of the host's. */
static void an_overlay_is_the_root(void **state)
{
	(void)state;
	assert_string_equal(kind(0, 41), "local overlay");
	assert_string_equal(kind(0, 43), "local overlay"); /* of folders of the root's */
	assert_string_equal(kind(0, 44), "users overlay"); /* a layer is seen here, and is FUSE's */
}

static void what_only_a_process_sees(void **state)
{
	(void)state;
	assert_string_equal(kind(7, 70), "local ext4 at a user's path");
	assert_string_equal(kind(7, 71), "users fuse of a user");
	assert_string_equal(kind(7, 72), "users tmpfs of a user"); /* a user's own mount */
	assert_string_equal(kind(7, 73), "users overlay of a user");
	assert_string_equal(kind(7, 74),
			    "users ext4 of a user"); /* a device of which root's table says something else */
	assert_string_equal(kind(8, 80), "local tmpfs"); /* root's own namespace, such as a service's */
	assert_string_equal(kind(8, 81), "users fuse");
	assert_string_equal(kind(9, 70), "users  of a user"); /* the process has ended */
}

static void this_machine(void **state)
{
	struct statx st;
	struct mount_found found;

	(void)state;
	mounts_free(mounts);
	assert_int_equal(mounts_new("/proc", &mounts), 0);
	assert_int_equal(statx(AT_FDCWD, "/proc/self/exe", 0, STATX_MNT_ID, &st), 0);
	if (!st.stx_mnt_id)
		need_unmet("statx() tells no mounts here");
	mounts_find(mounts, getpid(), st.stx_mnt_id, &found);
	if (strcmp(found.type, "overlay") != 0)
		assert_int_equal(found.kind, mount_kind_of_type(found.type));
	assert_true(found.by_root);
	assert_int_equal(statx(AT_FDCWD, "/proc", 0, STATX_MNT_ID, &st), 0);
	mounts_find(mounts, getpid(), st.stx_mnt_id, &found);
	assert_int_equal(found.kind, MOUNT_USERS);
	assert_string_equal(found.type, "proc");
}

static void lines(void **state)
{
	char good[] = "36 35 98:0 /mnt1 /m\\040t rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw",
	     *bad[] = { (char[]){ "" }, (char[]){ "36" }, (char[]){ "36 35 98 / / rw - x y z" },
			(char[]){ "36 35 9:8 / / rw" }, (char[]){ "x 35 9:8 / / rw - x y z" } };
	struct mount_line line;

	(void)state;
	assert_int_equal(mount_line_parse(good, &line), 0);
	assert_int_equal(line.id, 36);
	assert_int_equal(line.dev, makedev(98, 0));
	assert_string_equal(line.point, "/m t");
	assert_string_equal(line.type, "ext3");
	assert_string_equal(line.options, "rw");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(mount_line_parse(bad[i], &line), 0);
}

/* A file of this machine's disks; the same where no table tells of its mount, as of one that a user made. */
static void what_a_user_serves_is_not_admitted(_unused_ void **state)
{
	_cleanup_(mounts_freep) struct mounts *known = NULL, *unknown = NULL;
	_cleanup_close_ int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct statx st;

	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st), 0);
	if (!st.stx_mnt_id)
		need_unmet("statx() tells no mounts here");
	assert_int_equal(mounts_new("/proc", &known), 0);
	assert_int_equal(mounts_new("/nonexistent", &unknown), 0);
	assert_int_equal(mounts_admit(fd, &(struct mounts_user){ known, getpid() }), 1);
	assert_int_equal(mounts_admit(fd, &(struct mounts_user){ unknown, getpid() }), 0);
	assert_true(mounts_admit(-1, &(struct mounts_user){ known, getpid() }) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_root_mounted, begin, end),
		cmocka_unit_test_setup_teardown(an_overlay_is_as_good_as_its_layers, begin, end),
		cmocka_unit_test_setup_teardown(an_overlay_is_the_root, begin, end),
		cmocka_unit_test_setup_teardown(what_only_a_process_sees, begin, end),
		cmocka_unit_test_setup_teardown(this_machine, begin, end),
		cmocka_unit_test(what_a_user_serves_is_not_admitted),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
