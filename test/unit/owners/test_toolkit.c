// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owners/toolkit.h"

#define VARIABLE "accept-nvidia-visible-devices-envvar-when-unprivileged"
#define MOUNTS "accept-nvidia-visible-devices-as-volume-mounts"

static void two_keys_are_read(void **state)
{
	static const struct {
		const char *text;
		bool variable, mounts;
	} rows[] = {
		{ "", true, false },
		{ VARIABLE " = false\n" MOUNTS " = true\n", false, true },
		{ "  \"" VARIABLE "\"\t=false # why", false, false },
		{ "# " VARIABLE " = false\n", true, false },
		{ "x" VARIABLE " = false\n" VARIABLE "x = false\n", true, false },
		{ VARIABLE "\n" VARIABLE " = \n" VARIABLE " = 0\n\n\n=\n\"", true, false },
		/* Those of a table are others. */
		{ "[nvidia-container-cli]\n" VARIABLE " = false\n", true, false },
		{ MOUNTS " = true\n[x]\n" MOUNTS " = false\n", true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct toolkit toolkit = toolkit_parse(rows[i].text, strlen(rows[i].text));

		if (!toolkit.known || toolkit.variable != rows[i].variable ||
		    toolkit.mounts != rows[i].mounts)
			fail_msg("%s: %d %d", rows[i].text, toolkit.variable, toolkit.mounts);
	}
}

static char root[] = "/tmp/gpusonde-toolkit-XXXXXX";

static void put(const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" TOOLKIT_FILE, root);
	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void only_roots_file_is_believed(void **state)
{
	struct toolkit toolkit = toolkit_unknown;
	char command[128], large[32 << 10];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "mkdir -p %s/etc/nvidia-container-runtime", root);
	assert_int_equal(system(command), 0);
	fd = open(root, O_PATH | O_DIRECTORY);
	/* It may be on the host, and not below this folder. */
	assert_false(toolkit_read(&toolkit, fd));
	assert_false(toolkit.known);
	put(VARIABLE " = false\n", 0644);
	assert_true(toolkit_read(&toolkit, fd));
	assert_true(toolkit.known);
	assert_false(toolkit.variable);
	assert_false(toolkit_read(&toolkit, fd));
	put(VARIABLE " = false\n", 0666);
	assert_true(toolkit_read(&toolkit, fd));
	assert_false(toolkit.known);
	assert_true(toolkit.variable);
	memset(large, '\n', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	put(large, 0644);
	assert_false(toolkit_read(&toolkit, fd));
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_keys_are_read),
		cmocka_unit_test(only_roots_file_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
