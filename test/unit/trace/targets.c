// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "targets.h"

static void note(struct fixture *fixture, enum told_what what, pid_t pid, uint64_t ino)
{
	assert_true(fixture->told_n < ARRAY_SIZE(fixture->told));
	fixture->told[fixture->told_n].what = what;
	fixture->told[fixture->told_n].pid = pid;
	fixture->told[fixture->told_n++].ino = ino;
}

static int on_file(struct target_file *file, _unused_ const struct site_list *sites, void *userdata)
{
	struct fixture *fixture = userdata;
	struct stat st;

	assert_int_equal(fstat(file->fd, &st), 0);
	assert_int_equal(st.st_ino, file->ino);
	note(fixture, TOLD_FILE, 0, file->ino);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = fixture->reads_ns }, NULL);
	if (fixture->writes_to) {
		int fd = open(fixture->writes_to, O_WRONLY | O_APPEND | O_CLOEXEC);

		assert_int_equal(write(fd, "x", 1), 1);
		close(fd);
	}
	return fixture->answer;
}

static void on_file_gone(struct target_file *file, void *userdata)
{
	note(userdata, TOLD_FILE_GONE, 0, file->ino);
}

static void on_process(pid_t pid, struct target_file *file, _unused_ uint64_t since_ns, void *userdata)
{
	note(userdata, TOLD_PROCESS, pid, file->ino);
}

static void on_process_gone(pid_t pid, bool exec, void *userdata)
{
	note(userdata, exec ? TOLD_EXEC : TOLD_GONE, pid, 0);
}

static void on_any_mapping(pid_t pid, void *userdata)
{
	((struct fixture *)userdata)->mapping_of = pid;
}

int fixture_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/targets.XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	assert_true(sd_event_new(&fixture->event) >= 0);
	*state = fixture;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	targets_free(fixture->targets);
	sd_event_unref(fixture->event);
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

void fixture_start(struct fixture *fixture, const char *root, unsigned roles, pid_t pid)
{
	static const struct target_ops ops = { .file = on_file,
					       .file_gone = on_file_gone,
					       .process = on_process,
					       .mapping = on_any_mapping,
					       .process_gone = on_process_gone };
	const struct target_config config = {
		.roles = roles, .pid = pid, .children = pid != 0, .proc_root = root ? root : "/proc"
	};

	assert_int_equal(targets_new(fixture->event, &config, &ops, fixture, &fixture->targets), 0);
}

size_t told(const struct fixture *fixture, enum told_what what, pid_t pid, uint64_t ino)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->told_n; i++)
		n += fixture->told[i].what == what && (!pid || fixture->told[i].pid == pid) &&
		     (!ino || fixture->told[i].ino == ino);
	return n;
}

void until_told(struct fixture *fixture, enum told_what what, pid_t pid, size_t times)
{
	int64_t end = clock_mono_ns() + 30 * NSEC_PER_SEC;

	while (told(fixture, what, pid, 0) < times) {
		assert_true(clock_mono_ns() < end);
		assert_true(sd_event_run(fixture->event, 100 * 1000) >= 0);
	}
}

void until_scans(struct fixture *fixture, uint64_t scans)
{
	int64_t end = clock_mono_ns() + 60 * NSEC_PER_SEC;
	struct target_stats stats;

	for (;;) {
		targets_stats(fixture->targets, &stats);
		if (stats.scans >= scans)
			return;
		assert_true(clock_mono_ns() < end);
		assert_true(sd_event_run(fixture->event, 100 * 1000) >= 0);
	}
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

uint64_t make_file(struct fixture *fixture, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
	write_text(path, "what a library would be");
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

void make_process(struct fixture *fixture, pid_t pid, const char *name, uint64_t start_ticks)
{
	char base[128], path[256], text[1024];
	struct stat st = { 0 };

	snprintf(base, sizeof(base), "%s/%d", fixture->dir, (int)pid);
	assert_true(mkdir(base, 0700) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/root", base);
	assert_true(symlink("/", path) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/stat", base);
	snprintf(text, sizeof(text), "%d (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0\n", (int)pid,
		 (unsigned long long)start_ticks);
	write_text(path, text);
	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name ? name : "none");
	if (name)
		assert_int_equal(stat(path, &st), 0);
	snprintf(text, sizeof(text),
		 "55d0c0a00000-55d0c0a01000 r--p 00000000 08:01 11    /usr/bin/thing\n"
		 "7f0000000000-7f0000001000 r-xp 00000000 %02x:%02x %llu    %s\n"
		 "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]\n",
		 major(st.st_dev), minor(st.st_dev), (unsigned long long)st.st_ino, name ? path : "");
	snprintf(path, sizeof(path), "%s/maps", base);
	write_text(path, text);
}
