// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "lab.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

static struct trace_view *view;

static void begin(void)
{
	assert_int_equal(trace_view_new(LAB_PIDS, LAB_PIDS, 0, 0, 0, 0, 0, &view), 0);
	view->enabled = true;
	view->boot_ns = clock_boot_ns();
}

/* A process that has launched so often, and holds so much; errors are known if not negative. */
static struct traced_process *add(uint32_t pid, const char *uuid, double launches, double held, double errors)
{
	struct traced_process *process = &view->processes[view->processes_n];
	struct traced_device *device = &view->devices[view->devices_n];

	*process = (struct traced_process){ .id = { .pid = pid, .start_ticks = 70 },
					    .devices_first = view->devices_n++,
					    .devices_n = 1 };
	device->process = view->processes_n++;
	snprintf(device->uuid, sizeof(device->uuid), "%s", uuid);
	device->v[TRACED_LAUNCHES] = launches;
	device->p[TRACED_LAUNCHES] = PRESENCE_PRESENT;
	device->v[TRACED_LIVE_DEVICE] = held;
	device->p[TRACED_LIVE_DEVICE] = PRESENCE_PRESENT;
	device->v[TRACED_ERRORS] = errors;
	device->p[TRACED_ERRORS] = errors < 0 ? PRESENCE_ABSENT : PRESENCE_PRESENT;
	return process;
}

static void show(struct lab *lab)
{
	model_set_trace(lab->model, view);
	trace_view_unref(view);
	lab_wait(lab, NSEC_PER_SEC);
}

static const struct traced_use *find(const struct lab *lab, const char *id, const char *uuid)
{
	const struct snapshot *s = lab->s;

	for (uint32_t i = 0; i < s->traced_uses_n; i++) {
		const struct traced_use *use = &s->traced_uses[i];
		const char *name =
			use->name < s->workload_names_n ? s->workload_names[use->name].id : "other";

		if (STRV_EQ(name, id) && STRV_EQ(use->uuid, uuid))
			return use;
	}
	return NULL;
}

static void processes_add_up_and_stay(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 5, 70, WORKLOAD_CONTAINER, "box");
	lab_exists(lab, 6, 70, WORKLOAD_CONTAINER, "box");
	begin();
	add(5, "GPU-a", 10, 100, 1);
	add(6, "GPU-a", 5, 50, 0);
	show(lab);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LAUNCHES], 15, 0);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LIVE_DEVICE], 150, 0);
	assert_int_equal(find(lab, "box", "GPU-a")->live, 2);
	/* One ends, shown once more with its last figures; what it held is free. */
	begin();
	add(5, "GPU-a", 12, 100, 1)->exited = true;
	add(6, "GPU-a", 6, 60, 0);
	show(lab);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LAUNCHES], 18, 0);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LIVE_DEVICE], 60, 0);
	begin();
	add(6, "GPU-a", 7, 60, 0);
	show(lab);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LAUNCHES], 19, 0);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_ERRORS], 1, 0);
	assert_int_equal(find(lab, "box", "GPU-a")->p[TRACED_LAUNCHES], PRESENCE_PRESENT);
	/* Then the last; and another of the same container. */
	begin();
	show(lab);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LAUNCHES], 19, 0);
	assert_false(presence_is(find(lab, "box", "GPU-a")->p[TRACED_LIVE_DEVICE]));
	lab_exists(lab, 7, 70, WORKLOAD_CONTAINER, "box");
	begin();
	add(7, "GPU-a", 1, 8, -1);
	show(lab);
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_LAUNCHES], 20, 0);
	/* What one does not tell is missing in the sum. */
	assert_near(find(lab, "box", "GPU-a")->v[TRACED_ERRORS], 1, 0);
	assert_int_equal(find(lab, "box", "GPU-a")->p[TRACED_ERRORS], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	/* Nobody waits for the names of what has ended. */
	begin();
	show(lab);
	assert_false(model_wants_owners(lab->model));
	/* One has come, once. */
	assert_int_equal(model_unnamed(lab->model), 1);
}

static void each_device_has_its_own(void **state)
{
	struct lab *lab = *state;

	lab_exists(lab, 5, 70, WORKLOAD_JOB, "7");
	lab_exists(lab, 6, 70, WORKLOAD_NONE, "");
	begin();
	add(5, "GPU-a", 10, 0, 0);
	add(6, "GPU-a", 99, 0, 0);
	show(lab);
	begin();
	add(5, "GPU-b", 3, 0, 0);
	show(lab);
	assert_int_equal(lab->s->traced_uses_n, 2);
	assert_near(find(lab, "7", "GPU-b")->v[TRACED_LAUNCHES], 3, 0);
}

static void what_does_not_fit_is_others(void **state)
{
	const struct model_limits limits = { .processes = 64, .series = 8, .exited = 8, .workloads = 2 };
	struct lab *lab = lab_new(&limits);

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		char id[8];

		snprintf(id, sizeof(id), "w%u", i);
		lab_exists(lab, 5 + i, 70, WORKLOAD_CONTAINER, id);
		begin();
		add(5 + i, "GPU-a", 10, 0, 0);
		show(lab);
	}
	assert_int_equal(lab->s->traced_uses_n, 3);
	assert_near(find(lab, "other", "GPU-a")->v[TRACED_LAUNCHES], 30, 0);
	assert_near(find(lab, "w4", "GPU-a")->v[TRACED_LAUNCHES], 10, 0);
	assert_true(lab->s->agent[AGENT_DROPPED_WORKLOADS] >= 3);
	lab_free(lab);
}

/* A process in a workload of its own, "USER-PID". */
static void user_exists(struct lab *lab, uint32_t pid, uint32_t user)
{
	char id[32];

	snprintf(id, sizeof(id), "%u-%u", (unsigned)user, (unsigned)pid);
	lab_exists(lab, pid, 70, WORKLOAD_UNIT, id);
	lab->proc[pid].identity.user = user;
}

static void show_from(struct lab *lab, uint32_t from, uint32_t to, bool pod)
{
	begin();
	for (uint32_t pid = from; pid <= to; pid++)
		add(pid, "GPU-a", 10, 0, 0);
	if (pod)
		add(200, "GPU-a", 7, 0, 0);
	show(lab);
}

static void users_leave_places_to_others(void **state)
{
	const struct model_limits limits = { .processes = 64, .series = 8, .exited = 8, .workloads = 16 };
	struct lab *lab = lab_new(&limits);
	double all = 0;

	(void)state;
	for (uint32_t pid = 100; pid < 140; pid++)
		user_exists(lab, pid, 1000);
	show_from(lab, 100, 139, false);
	lab_exists(lab, 200, 70, WORKLOAD_CONTAINER, "pod");
	show_from(lab, 100, 139, true);
	assert_near(find(lab, "pod", "GPU-a")->v[TRACED_LAUNCHES], 7, 0);
	assert_int_equal(lab->s->traced_uses_n, 3); /* the user has two */
	assert_non_null(find(lab, "1000-100", "GPU-a"));
	assert_near(lab->s->agent[AGENT_DROPPED_USER_WORKLOADS], 38, 0);
	assert_near(lab->s->agent[AGENT_DROPPED_WORKLOADS], 0, 0);
	/* The user's first ten end: two others get the places. */
	show_from(lab, 110, 139, true);
	assert_null(find(lab, "1000-100", "GPU-a"));
	assert_int_equal(lab->s->traced_uses_n, 4);
	assert_near(find(lab, "pod", "GPU-a")->v[TRACED_LAUNCHES], 7, 0);
	/* What had no place, and what lost it, is in "other", once: 100 to 109. */
	assert_near(find(lab, "other", "GPU-a")->v[TRACED_LAUNCHES], 100, 0);
	begin();
	show(lab);
	for (uint32_t i = 0; i < lab->s->traced_uses_n; i++)
		all += lab->s->traced_uses[i].v[TRACED_LAUNCHES];
	assert_near(all, 407, 0);
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes_add_up_and_stay, lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(each_device_has_its_own, lab_setup, lab_teardown),
		cmocka_unit_test(what_does_not_fit_is_others),
		cmocka_unit_test(users_leave_places_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
