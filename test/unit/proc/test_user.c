// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/user.h"

static char root[] = "/tmp/gpusonde-user-XXXXXX";

static void put(uint32_t pid, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Whose the directory is does not matter: it is root's if the process cannot be dumped. */
static uint64_t answers_for(uint32_t pid, unsigned uid, const char *cgroup)
{
	char status[128];
	uint64_t user = 0;
	uint32_t own;

	snprintf(status, sizeof(status), "Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
	put(pid, "status", status);
	put(pid, "cgroup", cgroup);
	assert_int_equal(proc_answers_for(root, pid, &user, &own), 0);
	assert_int_equal(own, uid);
	return user;
}

static void containers_of_root_do_not_answer_for_each_other(void **state)
{
	static const char a[] = "0::/kubepods.slice/kubepods-podaaaaaaaa_0000_0000_0000_000000000001.slice/"
				"cri-containerd-"
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.scope\n";
	static const char b[] = "0::/kubepods.slice/kubepods-podbbbbbbbb_0000_0000_0000_000000000001.slice/"
				"cri-containerd-"
				"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.scope\n";
	uint64_t user = answers_for(1, 0, a);

	(void)state;
	assert_true(user > UINT32_MAX);
	assert_true(answers_for(2, 0, a) == user);
	assert_true(answers_for(3, 0, b) > UINT32_MAX);
	assert_true(answers_for(3, 0, b) != user);
	assert_true(answers_for(4, 0, "0::/system.slice/cron.service\n") == 0);
	assert_true(answers_for(5, 1000, a) == 1000);
}

static void who_has_ended_has_no_user(void **state)
{
	uint64_t user;
	uint32_t uid;

	(void)state;
	assert_int_equal(proc_answers_for(root, 77, &user, &uid), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_of_root_do_not_answer_for_each_other),
		cmocka_unit_test(who_has_ended_has_no_user),
	};
	char command[128];
	int r;

	if (!mkdtemp(root))
		return 1;
	r = cmocka_run_group_tests_name("user", tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) == 0 ? r : 1;
}
