// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "agent/kubelet.h"
#include "base/clock.h"

enum { PATIENCE = 1000 }; /* turns of 20 ms: the clock may stand still */

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct kubelet *kubelet;
static struct source source; /* as of the newest snapshot */
static double allocatable, unmatched; /* the same; -1: absent */
static char root[64], socket_path[128];
static int listening = -1;

static int begin(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)state;
	strcpy(root, "/tmp/gpusonde-kubelet-XXXXXX");
	if (!mkdtemp(root) || sd_event_new(&event) < 0 || publisher_new(&publisher) < 0)
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/k.sock", root);
	strcpy(address.sun_path, socket_path);
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listening, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(void **state)
{
	(void)state;
	clock_freeze(false);
	kubelet_free(kubelet);
	kubelet = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	close(listening);
	unlink(socket_path);
	return rmdir(root);
}

static void start(const char *how)
{
	char program[4096];
	const struct kubelet_config config = {
		.program = program, .root = root, .socket = "/k.sock", .resources = how
	};

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_kubelet", test_build_root());
	assert_int_equal(kubelet_new(event, model, &config, &kubelet), 0);
}

static double figure(const struct snapshot *s, enum agent_metric metric)
{
	return presence_is(s->agent_p[metric]) ? s->agent[metric] : -1;
}

static void turn(void)
{
	struct snapshot *snapshot;

	kubelet_tick(kubelet);
	assert_true(sd_event_run(event, 20000) >= 0);
	assert_int_equal(model_publish(model, publisher), 0);
	snapshot = publisher_get(publisher);
	source = snapshot->sources[SOURCE_KUBELET];
	allocatable = figure(snapshot, AGENT_KUBELET_ALLOCATABLE);
	unmatched = figure(snapshot, AGENT_KUBELET_UNMATCHED);
	snapshot_unref(snapshot);
}

/* Runs until the source says that it is well, or not. */
static void wait_state(enum reading_state wanted)
{
	int turns = 0;

	do {
		assert_true(turns++ < PATIENCE);
		turn();
	} while (!source.in_use || source.state != wanted);
}

static void takes_both_tables(void **state)
{
	(void)state;
	start("well");
	wait_state(READING_OK);
	assert_true(source.fresh);
	assert_string_equal(source.error, "");
	assert_true(kubelet_pid(kubelet) > 0);
	turn();
	assert_true(allocatable == 3);
	assert_true(unmatched == 2);
}

static void passes_errors_on(void **state)
{
	(void)state;
	start("fails");
	wait_state(READING_FAILED);
	assert_string_equal(source.error, "kubelet: List: ?\n");
	/* Another process makes another connection. */
	assert_int_equal(kubelet_pid(kubelet), 0);
	assert_true(allocatable == -1);
	assert_true(unmatched == -1);
}

/* The whole member was written to. */
static void bounds_errors(void **state)
{
	(void)state;
	start("error without end");
	wait_state(READING_FAILED);
	assert_int_equal(strlen(source.error), strlen("kubelet: ") + 240);
	assert_true(kubelet_pid(kubelet) > 0);
}

/* Its texts end within their members, whatever it sends. */
static void ends_texts(void **state)
{
	(void)state;
	start("unterminated");
	wait_state(READING_OK);
}

static void refuses(const char *how)
{
	start(how);
	wait_state(READING_FAILED);
	assert_string_equal(source.error, "kubelet: the process that asks it, gpusonde-kubelet, ended");
}

#define REFUSES(name_, how_)            \
	static void name_(void **state) \
	{                               \
		(void)state;            \
		refuses(how_);          \
	}
REFUSES(refuses_a_part_twice, "part twice")
REFUSES(refuses_a_table_of_no_kind, "table of no kind")
REFUSES(refuses_too_many_rows, "too many rows")
REFUSES(refuses_more_than_the_table, "more than the table")
REFUSES(refuses_no_digest, "no digest")
REFUSES(refuses_a_short_part, "short")
REFUSES(refuses_a_cut_table, "cut table")
REFUSES(refuses_another_digest, "another digest")
REFUSES(refuses_the_same_as_none, "same as none")
REFUSES(refuses_a_strange_outcome, "strange outcome")
REFUSES(refuses_a_strange_message, "strange message")
REFUSES(survives_its_end, "ends")

/* No node of Kubernetes: nothing runs, and there is nothing to say. */
static void says_nothing_without_a_socket(void **state)
{
	(void)state;
	unlink(socket_path);
	start("well");
	for (int i = 0; i < 5; i++)
		turn();
	assert_false(source.in_use);
	assert_int_equal(kubelet_pid(kubelet), 0);
}

static void forgets_a_kubelet_that_is_gone(void **state)
{
	(void)state;
	start("well");
	wait_state(READING_OK);
	unlink(socket_path);
	clock_advance(11 * NSEC_PER_SEC);
	wait_state(READING_FAILED);
	assert_string_equal(source.error, "kubelet: its socket is gone");
	assert_int_equal(kubelet_pid(kubelet), 0);
	clock_advance(61 * NSEC_PER_SEC);
	turn();
	assert_string_equal(source.error, "kubelet: its socket is gone, and what it said is forgotten");
}

static void says_that_there_is_no_program(void **state)
{
	const struct kubelet_config config = { .program = "/nowhere/gpusonde-kubelet",
					       .root = root,
					       .socket = "k.sock" };

	(void)state;
	assert_int_equal(kubelet_new(event, model, &config, &kubelet), 0);
	wait_state(READING_FAILED);
	assert_non_null(strstr(source.error, "No such file or directory"));
}

static void finds_sockets(void **state)
{
	char path[PATH_MAX], places[3][128], command[256];
	size_t below;

	(void)state;
	assert_int_equal(kubelet_find_socket(root, "auto", path, &below), -ENOENT);
	assert_int_equal(kubelet_find_socket(root, "k.sock", path, &below), 0);
	assert_string_equal(path, socket_path);
	assert_string_equal(path + below, "/k.sock");
	assert_int_equal(kubelet_find_socket("/", socket_path, path, &below), 0);
	assert_string_equal(path, socket_path);
	assert_int_equal(below, 0);
	kubelet_list_sockets("/", socket_path, path, sizeof(path));
	assert_string_equal(path, socket_path);
	kubelet_list_sockets("/x/", "auto", path, sizeof(path));
	assert_string_equal(path, "/x/var/lib/kubelet/pod-resources/kubelet.sock, "
				  "/x/var/snap/microk8s/common/var/lib/kubelet/pod-resources/kubelet.sock, "
				  "/x/var/lib/k0s/kubelet/pod-resources/kubelet.sock");
	kubelet_list_sockets("/x", "auto", path, 60);
	assert_int_equal(strlen(path), 59);
	/* A file is none. */
	assert_int_equal(kubelet_find_socket("/", "etc/passwd", path, &below), -ENOENT);
	snprintf(places[0], sizeof(places[0]), "%s/var/lib/k0s/kubelet/pod-resources", root);
	snprintf(command, sizeof(command), "mkdir -p %s", places[0]);
	assert_int_equal(system(command), 0);
	snprintf(places[1], sizeof(places[1]), "%.100s/kubelet.sock", places[0]);
	assert_int_equal(link(socket_path, places[1]), 0);
	assert_int_equal(kubelet_find_socket(root, "auto", path, &below), 0);
	assert_string_equal(path, places[1]);
	snprintf(command, sizeof(command), "rm -r %s/var", root);
	assert_int_equal(system(command), 0);
}

/* Runs until its process has ended. */
static void wait_end(void)
{
	for (int turns = 0; kubelet_pid(kubelet); turns++) {
		assert_true(turns < PATIENCE);
		assert_true(sd_event_run(event, 20000) >= 0);
	}
}

/* Each time it waits longer, as long as between any two questions at most. */
static void a_kubelet_that_closes_after_each_answer_costs_few_processes(void **state)
{
	static const int waits_s[] = { 2, 4, 8, 10, 10 };

	(void)state;
	clock_freeze(true);
	start("closes");
	wait_state(READING_OK);
	for (size_t i = 0; i < ARRAY_SIZE(waits_s); i++) {
		wait_end();
		clock_advance((waits_s[i] - 1) * NSEC_PER_SEC);
		turn();
		assert_int_equal(kubelet_pid(kubelet), 0);
		clock_advance(NSEC_PER_SEC);
		kubelet_tick(kubelet);
		assert_true(kubelet_pid(kubelet) > 0);
	}
	assert_int_equal(source.state, READING_OK);
}

/* The next question is due as late as without it. */
static void a_kubelet_that_refuses_and_closes_is_left_alone(void **state)
{
	(void)state;
	clock_freeze(true);
	start("refuses and closes");
	wait_state(READING_FAILED);
	wait_end();
	clock_advance(19 * NSEC_PER_SEC);
	turn();
	assert_int_equal(kubelet_pid(kubelet), 0);
	clock_advance(NSEC_PER_SEC);
	kubelet_tick(kubelet);
	assert_true(kubelet_pid(kubelet) > 0);
}

static int identify(uint32_t pid, _unused_ bool full, struct process_identity *ret_identity,
		    _unused_ void *userdata)
{
	*ret_identity = (struct process_identity){ .id = { .pid = pid, .start_ticks = 1 },
						   .kind = WORKLOAD_CONTAINER };
	snprintf(ret_identity->workload_id, sizeof(ret_identity->workload_id), "container %u", pid);
	return 0;
}

/* So many containers use a GPU, and nobody knows their names. */
static void use(uint32_t containers)
{
	_cleanup_free_ struct reading *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->attach = 1;
	r->begin_ns = r->end_ns = clock_boot_ns();
	r->entities[r->entities_n++] = (struct reading_entity){ .uuid = "GPU-1",
								.minor = UINT32_MAX,
								.gi = UINT32_MAX,
								.ci = UINT32_MAX,
								.parent = READING_NONE,
								.process_list = PRESENCE_PRESENT };
	for (uint32_t i = 0; i < containers; i++)
		r->processes[r->processes_n++] =
			(struct reading_process){ .pid = i + 1, .types = PROCESS_TYPE_COMPUTE };
	model_set_identify(model, identify, NULL);
	assert_int_equal(model_apply(model, SOURCE_NVML, r), 0);
	assert_true(model_wants_owners(model));
}

/* Runs until the process has been asked so often. */
static void wait_questions(double n)
{
	int turns = 0;

	for (turn(); allocatable < n; turn())
		assert_true(turns++ < PATIENCE);
	assert_true(allocatable <= n);
}

static void each_new_container_without_a_name_has_quick_questions(void **state)
{
	(void)state;
	clock_freeze(true);
	start("counts");
	wait_state(READING_OK);
	for (uint32_t containers = 1; containers <= 2; containers++) {
		use(containers);
		for (int i = 1; i <= 5; i++) {
			clock_advance(NSEC_PER_SEC);
			wait_questions(1 + (containers - 1) * 5 + i);
		}
		/* It has none. */
		clock_advance(NSEC_PER_SEC);
		for (int i = 0; i < 5; i++)
			turn();
		wait_questions(1 + containers * 5);
	}
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(takes_both_tables),
		CASE(passes_errors_on),
		CASE(bounds_errors),
		CASE(ends_texts),
		CASE(refuses_a_part_twice),
		CASE(refuses_a_table_of_no_kind),
		CASE(refuses_too_many_rows),
		CASE(refuses_more_than_the_table),
		CASE(refuses_no_digest),
		CASE(refuses_a_short_part),
		CASE(refuses_a_cut_table),
		CASE(refuses_another_digest),
		CASE(refuses_the_same_as_none),
		CASE(refuses_a_strange_outcome),
		CASE(refuses_a_strange_message),
		CASE(survives_its_end),
		CASE(says_nothing_without_a_socket),
		CASE(forgets_a_kubelet_that_is_gone),
		CASE(says_that_there_is_no_program),
		CASE(finds_sockets),
		CASE(a_kubelet_that_closes_after_each_answer_costs_few_processes),
		CASE(a_kubelet_that_refuses_and_closes_is_left_alone),
		CASE(each_new_container_without_a_name_has_quick_questions),
	};

	return cmocka_run_group_tests_name("kubelet", tests, NULL, NULL);
}
