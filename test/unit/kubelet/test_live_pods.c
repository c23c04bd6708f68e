// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kubelet/live_pods.h"

#define UID "01234567-89ab-cdef-0123-456789abcdef"
#define UID_ "01234567_89ab_cdef_0123_456789abcdef"
#define OTHER "ffffffff-89ab-cdef-0123-456789abcdef"
#define HASH "0123456789abcdef0123456789abcdef"

static char folder[64];
static struct live_pods live;

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/gpusonde-pods-XXXXXX");
	live_pods_init(&live);
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	live_pods_done(&live);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void make(const char *path)
{
	char command[512];

	snprintf(command, sizeof(command), "mkdir -p '%s/%s'", folder, path);
	assert_int_equal(system(command), 0);
}

static enum liveness find(const char *namespace, const char *pod, char uid[48])
{
	int root = open(folder, O_PATH | O_DIRECTORY);
	enum liveness found;

	NEED_CALL(openat2);
	live_pods_read(&live, root);
	found = live_pods_find(&live, namespace, pod, uid);
	close(root);
	return found;
}

static void reads_uids_of_cgroups(void **state)
{
	static const struct {
		const char *name, *uid;
	} names[] = {
		{ "pod" UID, UID },
		{ "kubepods-pod" UID_ ".slice", UID },
		{ "kubepods-burstable-pod" UID_ ".slice", UID },
		{ "kubelet-kubepods-besteffort-pod" UID_ ".slice", UID },
		{ "pod" HASH, HASH },
		{ "kubepods-burstable-pod" HASH ".slice", HASH },
		{ "pod", NULL },
		{ "pod123", NULL },
		{ "kubepods", NULL },
		{ "pod" UID ".scope", NULL },
		{ "pod" UID UID, NULL },
		{ "x" UID, NULL },
		{ "", NULL },
	};
	char uid[48];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(pod_uid_of_cgroup(names[i].name, uid), names[i].uid != NULL);
		if (names[i].uid)
			assert_string_equal(uid, names[i].uid);
	}
}

static void lives(const char *cgroup)
{
	char uid[48];

	make("var/log/pods/ml_train-0_" UID);
	make(cgroup);
	assert_int_equal(find("ml", "train-0", uid), POD_LIVES);
	assert_string_equal(uid, UID);
	assert_int_equal(find("other", "train-0", uid), POD_UNKNOWN);
	assert_string_equal(uid, "");
}

#define LIVES(name_, cgroup_)           \
	static void name_(void **state) \
	{                               \
		(void)state;            \
		lives(cgroup_);         \
	}
LIVES(lives_in_version_2, "sys/fs/cgroup/kubepods/pod" UID)
LIVES(lives_in_version_1, "sys/fs/cgroup/memory/kubepods/besteffort/pod" UID)
LIVES(lives_in_slices,
      "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice")
LIVES(lives_in_a_nested_kubelet, "sys/fs/cgroup/kubelet/kubepods/burstable/pod" UID)
LIVES(lives_in_a_nested_slice,
      "sys/fs/cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice")

static void ends_with_its_cgroup(void **state)
{
	char uid[48];

	(void)state;
	make("var/log/pods/ml_train-0_" UID);
	make("sys/fs/cgroup/kubepods/burstable");
	assert_int_equal(find("ml", "train-0", uid), POD_ENDED);
	assert_string_equal(uid, "");
	/* One that is made again under the name. */
	make("var/log/pods/ml_train-0_" OTHER);
	make("sys/fs/cgroup/kubepods/burstable/pod" OTHER);
	assert_int_equal(find("ml", "train-0", uid), POD_LIVES);
	assert_string_equal(uid, OTHER);
	/* Both: which one kubelet means is not known. */
	make("sys/fs/cgroup/kubepods/pod" UID);
	assert_int_equal(find("ml", "train-0", uid), POD_LIVES);
	assert_string_equal(uid, "");
}

static void does_not_know_without_folders(void **state)
{
	char uid[48];

	(void)state;
	make("sys/fs/cgroup/kubepods/burstable");
	assert_int_equal(find("ml", "train-0", uid), POD_UNKNOWN);
	make("var/log/pods/train-0");
	make("var/log/pods/ml_train-0_");
	assert_int_equal(find("ml", "train-0", uid), POD_UNKNOWN);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reads_uids_of_cgroups),     CASE(lives_in_version_2),
		CASE(lives_in_version_1),        CASE(lives_in_slices),
		CASE(lives_in_a_nested_kubelet), CASE(lives_in_a_nested_slice),
		CASE(ends_with_its_cgroup),      CASE(does_not_know_without_folders),
	};

	return cmocka_run_group_tests_name("live_pods", tests, NULL, NULL);
}
