// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "owners/running.h"
#include "owners/scan.h"

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"
#define ONE DIGITS "01"
#define TWO DIGITS "02"
#define LINKS "var/log/containers/"
#define DOCKER "var/lib/docker/containers/"
#define BUNDLES "run/containerd/io.containerd.runtime.v2.task/k8s.io/"
#define TASKS "run/containerd/io.containerd.runtime.v2.task/moby/"
#define STORAGE "run/containers/storage/overlay-containers/"
#define RUNNING "{\"ID\":\"" ONE "\",\"Name\":\"/a\",\"State\":{\"Running\":true,\"Pid\":1}}"
#define STOPPED "{\"ID\":\"" ONE "\",\"Name\":\"/a\",\"State\":{\"Running\":false,\"Pid\":0}}"
#define WITH_NODE(minor_) \
	"{\"linux\":{\"devices\":[{\"path\":\"/dev/x\",\"major\":195,\"minor\":" #minor_ "}]}}"
#define ANNOTATIONS                                                \
	"{\"annotations\":{\"io.kubernetes.pod.namespace\":\"b\"," \
	"\"io.kubernetes.pod.name\":\"bundle\"}}"

static char root[64];
static time_t past_s; /* the same in a whole test */
static const char *job_dir;
static struct scan *scan;
static struct scan_table table;

static const char *below(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* A file of this text, and its folders; its time and that of its folder are long past. */
static void make(const char *name, const char *text)
{
	const struct timespec past[2] = { { .tv_sec = past_s }, { .tv_sec = past_s } };
	char path[512];
	FILE *file;

	strcpy(path, below(name));
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	utimensat(AT_FDCWD, path, past, 0);
	*strrchr(path, '/') = '\0';
	utimensat(AT_FDCWD, path, past, 0);
}

static void docker(const char *id, const char *name)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), DOCKER "%s/config.v2.json", id);
	snprintf(text, sizeof(text), "{\"ID\":\"%s\",\"Name\":\"/%s\"}", id, name);
	make(path, text);
}

static int begin(void **state)
{
	(void)state;
	past_s = time(NULL) - 10;
	job_dir = "";
	strcpy(root, "/tmp/scan.XXXXXX");
	return mkdtemp(root) ? scan_new(&scan) : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	scan_free(scan);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void run(void)
{
	assert_int_equal(scan_run(scan, root, job_dir, &table), 0);
}

static const struct owner *find(enum workload_kind kind, const char *id)
{
	for (uint32_t i = 0; i < table.n; i++)
		if (table.list[i].workload == kind && strcmp(table.list[i].id, id) == 0)
			return &table.list[i];
	return NULL;
}

static void an_empty_node_has_none(void **state)
{
	(void)state;
	run();
	assert_int_equal(table.n, 0);
	assert_true(table.digest != 0);
	assert_string_equal(table.error, "");
}

static void finds_them_in_all_places(void **state)
{
	uint64_t empty;

	(void)state;
	run();
	empty = table.digest;
	make(LINKS "p_ns_c-" ONE ".log", "");
	make(LINKS "other", "");
	make("var/log/pods/ns_p_11111111-2222-3333-4444-555555555555/c/0.log", "");
	docker(TWO, "trainer");
	make("var/lib/containers/storage/overlay-containers/containers.json",
	     "[{\"id\":\"" DIGITS "03\",\"names\":[\"web\"]}]");
	make(BUNDLES DIGITS "04/config.json", ANNOTATIONS);
	make(BUNDLES DIGITS "05/config.json", "{}");
	run();
	assert_int_equal(table.n, 5);
	assert_true(table.digest != empty);
	assert_string_equal(find(WORKLOAD_CONTAINER, ONE)->pod, "p");
	assert_string_equal(find(WORKLOAD_CONTAINER, TWO)->container, "trainer");
	assert_string_equal(find(WORKLOAD_CONTAINER, DIGITS "03")->container, "web");
	assert_string_equal(find(WORKLOAD_CONTAINER, DIGITS "04")->pod, "bundle");
	assert_string_equal(find(WORKLOAD_POD, "11111111-2222-3333-4444-555555555555")->namespace, "ns");
}

/* Each container once: by the first place that has it. */
static void of_two_places_one_row(void **state)
{
	(void)state;
	make(LINKS "p_ns_c-" ONE ".log", "");
	make(BUNDLES ONE "/config.json", ANNOTATIONS);
	run();
	assert_int_equal(table.n, 1);
	assert_string_equal(table.list[0].pod, "p");
}

static void sees_what_comes_goes_and_changes(void **state)
{
	uint64_t before;

	(void)state;
	docker(ONE, "first");
	run();
	before = table.digest;
	run();
	assert_int_equal(table.digest, before);
	/* Another container: its folder's time is another one. */
	docker(TWO, "second");
	assert_int_equal(utimensat(AT_FDCWD, below("var/lib/docker/containers"), NULL, 0), 0);
	run();
	assert_int_equal(table.n, 2);
	assert_string_equal(find(WORKLOAD_CONTAINER, ONE)->container, "first");
	/* A new name: its file's time is another one. */
	docker(ONE, "renamed");
	assert_int_equal(utimensat(AT_FDCWD, below(DOCKER ONE "/config.v2.json"), NULL, 0), 0);
	run();
	assert_string_equal(find(WORKLOAD_CONTAINER, ONE)->container, "renamed");
	unlink(below(DOCKER TWO "/config.v2.json"));
	rmdir(below(DOCKER TWO));
	run();
	assert_int_equal(table.n, 1);
	assert_null(find(WORKLOAD_CONTAINER, TWO));
}

/* Their content counts as long as their times do not change. */
static void reads_nothing_twice(void **state)
{
	(void)state;
	docker(ONE, "first");
	run();
	docker(ONE, "hidden");
	run();
	assert_string_equal(find(WORKLOAD_CONTAINER, ONE)->container, "first");
}

/* A runtime makes a container's folder before the file in it. */
static void a_file_may_come_later(void **state)
{
	(void)state;
	make(DOCKER ONE "/other", "");
	run();
	assert_int_equal(table.n, 0);
	docker(ONE, "late");
	run();
	assert_int_equal(table.n, 1);
}

/* What was known of a folder stays while it cannot be read. */
static void keeps_what_it_cannot_read_again(void **state)
{
	uint64_t before;

	(void)state;
	make("var/lib/containers/storage/overlay-containers/containers.json",
	     "[{\"id\":\"" ONE "\",\"names\":[\"web\"]}]");
	run();
	before = table.digest;
	make("var/lib/containers/storage/overlay-containers/containers.json", "nonsense");
	utimensat(AT_FDCWD, below("var/lib/containers/storage/overlay-containers/containers.json"), NULL, 0);
	run();
	assert_int_equal(table.digest, before);
	assert_true(table.error[0]);
}

static void says_what_it_cannot_read(void **state)
{
	(void)state;
	make("var/lib/docker/containers", "a file");
	make(LINKS "p_ns_c-" ONE ".log", "");
	make("var/lib/containers/storage/overlay-containers/containers.json", "nonsense");
	run();
	assert_int_equal(table.n, 1);
	assert_string_equal(table.error, "/var/lib/docker/containers: Not a directory");
	/* It goes on being said. */
	run();
	assert_string_equal(table.error, "/var/lib/docker/containers: Not a directory");
	unlink(below("var/lib/docker/containers"));
	run();
	assert_string_equal(table.error,
			    "/var/lib/containers/storage/overlay-containers/containers.json: Bad message");
	run();
	assert_string_equal(table.error,
			    "/var/lib/containers/storage/overlay-containers/containers.json: Bad message");
}

static void a_root_that_is_missing_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(scan_run(scan, below("nowhere"), "", &table), -ENOENT);
}

/* Neither a link out of the root nor a FIFO is followed. */
static void stays_below_its_root(void **state)
{
	char elsewhere[80];

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s.outside", root);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	make("var/log/x", "");
	assert_int_equal(symlink(elsewhere, below("var/log/containers")), 0);
	make(DOCKER ONE "/x", "");
	assert_int_equal(mkfifo(below(DOCKER ONE "/config.v2.json"), 0600), 0);
	run();
	assert_int_equal(table.n, 0);
	/* An absolute link is one of the host's. */
	unlink(below("var/log/containers"));
	assert_int_equal(symlink("/data/logs", below("var/log/containers")), 0);
	make("data/logs/p_ns_c-" TWO ".log", "");
	run();
	assert_int_equal(table.n, 1);
	rmdir(elsewhere);
}

static void more_than_fit_are_counted(void **state)
{
	char name[256];

	(void)state;
	make(LINKS "other", "");
	for (unsigned i = 0; i < OWNERS_MAX + 10; i++) {
		snprintf(name, sizeof(name), LINKS "p%u_ns_c-%.60s%04x.log", i, DIGITS, i);
		close(open(below(name), O_CREAT | O_WRONLY, 0600));
	}
	run();
	assert_int_equal(table.n, OWNERS_MAX);
	assert_int_equal(table.dropped, 10);
}

static const struct allocation *find_given(const char *id)
{
	for (uint32_t i = 0; i < table.given_n; i++)
		if (strcmp(table.given[i].id, id) == 0)
			return &table.given[i];
	return NULL;
}

static void finds_what_was_given(void **state)
{
	uint64_t before;

	(void)state;
	run();
	before = table.digest;
	make(BUNDLES ONE "/config.json", WITH_NODE(2));
	make(BUNDLES TWO "/config.json", ANNOTATIONS);
	run();
	assert_true(table.digest != before);
	assert_int_equal(table.given_n, 1);
	assert_int_equal(table.given[0].workload, WORKLOAD_CONTAINER);
	assert_string_equal(table.given[0].id, ONE);
	assert_string_equal(table.given[0].resource, "devices");
	assert_int_equal(table.given[0].device.kind, DEVICE_BY_MINOR);
	assert_int_equal(table.given[0].device.index, 2);
	/* It is so as long as nothing changes. */
	before = table.digest;
	run();
	assert_int_equal(table.given_n, 1);
	assert_int_equal(table.digest, before);
	unlink(below(BUNDLES ONE "/config.json"));
	rmdir(below(BUNDLES ONE));
	run();
	assert_int_equal(table.given_n, 0);
	assert_true(table.digest != before);
}

/* Docker's bundle shows what was done, its own files what was asked for. */
static void a_bundle_decides_before_dockers_files(void **state)
{
	(void)state;
	make(DOCKER ONE "/config.v2.json", RUNNING);
	make(DOCKER ONE "/hostconfig.json", "{\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":-1}]}");
	make(TASKS ONE "/config.json", "{}");
	run();
	assert_int_equal(table.given_n, 0);
	make(TASKS ONE "/config.json", WITH_NODE(1));
	utimensat(AT_FDCWD, below(TASKS ONE "/config.json"), NULL, 0);
	utimensat(AT_FDCWD, below(TASKS), NULL, 0);
	run();
	assert_int_equal(table.given_n, 1);
	assert_int_equal(table.given[0].device.kind, DEVICE_BY_MINOR);
	assert_string_equal(find(WORKLOAD_CONTAINER, ONE)->container, "a");
}

/* Without the host's processes all of them seem to run that have one. */
static void stopped_containers_have_nothing(void **state)
{
	char pid[16];

	(void)state;
	make(DOCKER ONE "/config.v2.json", STOPPED);
	make(DOCKER ONE "/hostconfig.json", "{\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":-1}]}");
	make(STORAGE TWO "/userdata/config.json", WITH_NODE(3));
	run();
	assert_int_equal(table.given_n, 0);
	/* Another process has its number. */
	snprintf(pid, sizeof(pid), "%d", getpid());
	make(STORAGE TWO "/userdata/pidfile", pid);
	run();
	assert_int_equal(table.given_n, running_can_tell() ? 0 : 1);
	make(BUNDLES DIGITS "03/config.json", WITH_NODE(4));
	make(BUNDLES DIGITS "03/init.pid", pid);
	run();
	assert_int_equal(find_given(DIGITS "03") != NULL, !running_can_tell());
}

static void a_process_is_of_its_cgroup(void **state)
{
	(void)state;
	assert_true(running_is((uint32_t)getpid(), "/"));
	assert_false(running_is((uint32_t)getpid(), ONE));
	assert_false(running_is(INT32_MAX, "/"));
}

static void names_of_cdi_follow_their_specifications(void **state)
{
	static const char bundle[] =
		"{\"annotations\":{\"cdi.k8s.io/a\":\"nvidia.com/gpu=x\"},\"linux\":{\"devices\":["
		"{\"path\":\"/dev/nvidia5\",\"major\":195,\"minor\":5}]}}";
	static const char spec[] = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n"
				   "- name: x\n  containerEdits: {deviceNodes: [{path: /dev/nvidia5}]}\n"
				   "- name: GPU-7\n  containerEdits: {deviceNodes: [{path: /dev/nvidia5}]}\n";

	(void)state;
	make(BUNDLES ONE "/config.json", bundle);
	run();
	assert_int_equal(table.given_n, 1);
	assert_int_equal(table.given[0].device.kind, DEVICE_BY_MINOR);
	assert_int_equal(table.given_dropped, 0);
	make("etc/cdi/a.yaml", spec);
	run();
	assert_int_equal(table.given_n, 1);
	assert_int_equal(table.given[0].device.index, 5);
	assert_string_equal(table.given[0].resource, "nvidia.com/gpu");
	make("etc/cdi/b.yaml", "nonsense: [");
	run();
	assert_int_equal(table.given_n, 1);
	assert_string_equal(table.error, "/etc/cdi/b.yaml: Bad message");
}

/* The hook's configuration: as long as it is not at hand what it may follow is an estimate. */
static void what_the_hook_follows_is_read_again(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	make(BUNDLES ONE "/config.json",
	     "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"}]},"
	     "\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=1\"]}}");
	run();
	assert_int_equal(table.given_n, 1);
	assert_true(table.given[0].estimated);
	make("etc/nvidia-container-runtime/config.toml", "debug = false\n");
	run();
	assert_int_equal(table.given_n, 1);
	assert_false(table.given[0].estimated);
	make("etc/nvidia-container-runtime/config.toml",
	     "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n");
	run();
	assert_int_equal(table.given_n, 0);
}

static bool has_job(const char *id, uint32_t gpu, uint32_t gi)
{
	for (uint32_t i = 0; i < table.given_n; i++) {
		const struct allocation *a = &table.given[i];

		if (a->workload == WORKLOAD_JOB && strcmp(a->id, id) == 0 &&
		    a->device.kind == DEVICE_BY_INDEX && a->device.index == gpu && a->device.gi == gi)
			return true;
	}
	return false;
}

static void jobs_of_a_prologs_folder(void **state)
{
	char long_id[200];
	uint64_t digest;

	(void)state;
	memset(long_id, 'x', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = '\0';
	job_dir = "/run/jobs";
	run();
	assert_string_equal(table.error, "workload.job_dir /run/jobs: No such file or directory");
	make("run/jobs/0", "42\n  43 \n\n44");
	make("run/jobs/1.7", "a \"b\"\n");
	make("run/jobs/2", long_id);
	make("run/jobs/README", "5\n");
	make("run/jobs/3.", "6\n");
	make("run/jobs/4.1.1", "7\n");
	run();
	assert_string_equal(table.error, "");
	assert_int_equal(table.given_n, 4);
	assert_int_equal(table.given_dropped, 1);
	assert_true(has_job("42", 0, DEVICE_REF_NO) && has_job("43", 0, DEVICE_REF_NO) &&
		    has_job("44", 0, DEVICE_REF_NO) && has_job("a \"b\"", 1, 7));
	digest = table.digest;
	run();
	assert_true(table.digest == digest);
	/* Each scan reads them: a prolog may write twice within a second. */
	make("run/jobs/0", "42\n");
	run();
	assert_int_equal(table.given_n, 2);
	assert_true(table.digest != digest);
}

/* Beside one of the last, the others have no process that could be asked for. */
static void some_are_looked_at_with_each_scan(void **state)
{
	enum { MANY = 40 };
	char name[256], pid[16];

	(void)state;
	if (!running_can_tell())
		need_unmet("processes of containers are not seen from here");
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), BUNDLES DIGITS "%02x/config.json", i);
		make(name, WITH_NODE(0));
	}
	run();
	usleep(200000); /* what has just changed is read again */
	run();
	assert_int_equal(table.given_n, MANY);
	snprintf(name, sizeof(name), BUNDLES DIGITS "%02x/init.pid", MANY - 1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	make(name, pid);
	run();
	assert_int_equal(table.given_n, MANY);
	run();
	assert_int_equal(table.given_n, MANY - 1);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_node_has_none),
		CASE(finds_them_in_all_places),
		CASE(of_two_places_one_row),
		CASE(sees_what_comes_goes_and_changes),
		CASE(reads_nothing_twice),
		CASE(a_file_may_come_later),
		CASE(keeps_what_it_cannot_read_again),
		CASE(says_what_it_cannot_read),
		CASE(a_root_that_is_missing_is_an_error),
		CASE(stays_below_its_root),
		CASE(more_than_fit_are_counted),
		CASE(finds_what_was_given),
		CASE(a_bundle_decides_before_dockers_files),
		CASE(stopped_containers_have_nothing),
		CASE(some_are_looked_at_with_each_scan),
		CASE(a_process_is_of_its_cgroup),
		CASE(jobs_of_a_prologs_folder),
		CASE(names_of_cdi_follow_their_specifications),
		CASE(what_the_hook_follows_is_read_again),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
