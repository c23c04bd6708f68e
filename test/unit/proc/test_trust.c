// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "proc/trust.h"

static bool allows(const char *text, enum mount_kind kind, bool by_root, const char *type, const char *path,
		   uint32_t user)
{
	struct mount_found mount = { .kind = kind,
				     .by_root = by_root,
				     .path_by_root = by_root && user != 1001 };
	const struct trust_file file = {
		.mount = &mount, .path = path, .path_n = strlen(path), .user = user
	};
	struct trust *trust;
	bool allowed;

	strcpy(mount.type, type);
	assert_int_equal(trust_new(text, &trust), 0);
	allowed = trust_allows(trust, &file);
	trust_free(trust);
	return allowed;
}

static void local_files_need_no_trust(void **state)
{
	(void)state;
	assert_true(allows("", MOUNT_LOCAL, true, "ext4", "/lib/libcuda.so.1", 1000));
	assert_false(allows("", MOUNT_NETWORK, true, "nfs4", "/lib/libcuda.so.1", 0));
	assert_false(allows("", MOUNT_USERS, false, "fuse", "/lib/libcuda.so.1", 0));
}

static void paths_and_types_are_of_roots_mounts(void **state)
{
	(void)state;
	assert_true(allows("/nfs/conda", MOUNT_NETWORK, true, "nfs4", "/nfs/conda/lib/x.so", 1000));
	assert_true(allows(" /opt , /nfs/conda/ ", MOUNT_NETWORK, true, "nfs4", "/nfs/conda/x.so", 1000));
	assert_false(allows("/nfs/conda", MOUNT_NETWORK, true, "nfs4", "/nfs/condax/x.so", 1000));
	assert_false(allows("/nfs/conda", MOUNT_NETWORK, true, "nfs4", "/nfs/conda", 1000));
	assert_false(allows("/nfs/conda", MOUNT_USERS, false, "fuse", "/nfs/conda/x.so", 1000));
	/* root's file system, at a path that user 1001 has chosen */
	assert_false(allows("/nfs/conda", MOUNT_NETWORK, true, "nfs4", "/nfs/conda/lib/x.so", 1001));
	assert_true(allows("fstype:nfs4", MOUNT_NETWORK, true, "nfs4", "/x", 1001));
	assert_true(allows("/", MOUNT_USERS, true, "fuse.x", "/x", 1000));
	assert_true(allows("fstype:nfs4", MOUNT_NETWORK, true, "nfs4", "/x", 1000));
	assert_false(allows("fstype:nfs4", MOUNT_NETWORK, true, "nfs", "/x", 1000));
	assert_false(allows("fstype:fuse", MOUNT_USERS, false, "fuse", "/x", 1000));
}

static void users_are_trusted_whole(void **state)
{
	(void)state;
	assert_true(allows("user:1000", MOUNT_USERS, false, "fuse", "/x", 1000));
	assert_false(allows("user:1000", MOUNT_USERS, false, "fuse", "/x", 1001));
	assert_true(allows("user:root", MOUNT_USERS, false, "fuse", "/x", 0));
}

static void what_is_not_understood_is_refused(void **state)
{
	static const char *const bad[] = {
		"nfs",     "fstype:", "user:",           "user:nobody-has-this-name",
		"path:/x", "/x,y",    "user:4294967295", "user:-1"
	};
	struct trust *trust = NULL;
	char many[1024] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(trust_new(bad[i], &trust), -22);
	for (unsigned i = 0; i < 65; i++)
		strcat(many, "/x,");
	assert_int_equal(trust_new(many, &trust), -22);
	many[3 * 64] = '\0';
	assert_int_equal(trust_new(many, &trust), 0);
	trust_free(trust);
}

static void is_written_without_names(void **state)
{
	struct trust *trust;
	char text[64];

	(void)state;
	assert_int_equal(trust_new("/a b, fstype:nfs,user:root,", &trust), 0);
	assert_int_equal(trust_write(trust, text, sizeof(text)), 0);
	assert_string_equal(text, "/a b,fstype:nfs,user:0");
	assert_int_equal(trust_write(trust, text, strlen("/a b,fstype:nfs,user:0")), -105);
	trust_free(trust);
	assert_int_equal(trust_new("", &trust), 0);
	assert_int_equal(trust_write(trust, text, 1), 0);
	trust_free(trust);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_files_need_no_trust),
		cmocka_unit_test(paths_and_types_are_of_roots_mounts),
		cmocka_unit_test(users_are_trusted_whole),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(is_written_without_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
