// SPDX-License-Identifier: Apache-2.0
/* The agent's figure of denied cgroups: absent until it has looked. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/driver/device_access.h"
#include "base/clock.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct fixture {
	struct options options;
	struct model *model;
	struct publisher *publisher;
	struct device_access *access;
};

static void set(struct fixture *f, enum option_id id, const char *text)
{
	struct strbuf errors;

	strbuf_init(&errors, 0);
	assert_int_equal(options_set(&f->options, &option_table[id], text, ORIGIN_FLAG, "test", &errors), 0);
	assert_int_equal(errors.len, 0);
	strbuf_done(&errors);
}

static void begin(struct fixture *f, const char *devices)
{
	assert_int_equal(options_init(&f->options), 0);
	set(f, OPT_cgroup_allow, "no-such.service");
	set(f, OPT_cgroup_devices, devices);
	assert_int_equal(publisher_new(&f->publisher), 0);
	assert_int_equal(model_new(&(struct model_limits){ 16, 16, 16, 16 }, &f->model), 0);
	assert_int_equal(device_access_new(&f->options, f->model, &f->access), 0);
	assert_non_null(f->access);
}

static void end(struct fixture *f)
{
	device_access_free(f->access);
	model_free(f->model);
	publisher_free(f->publisher);
	options_done(&f->options);
}

/* -1: absent. */
static double denied(const struct fixture *f)
{
	struct snapshot *s;
	double value;

	assert_int_equal(model_publish(f->model, f->publisher), 0);
	s = publisher_get(f->publisher);
	value = presence_is(s->agent_p[AGENT_CGROUP_DENIED]) ? s->agent[AGENT_CGROUP_DENIED] : -1;
	snapshot_unref(s);
	return value;
}

static void is_absent_until_a_look_has_ended(_unused_ void **state)
{
	char devices[] = "/tmp/gpusonde-test-XXXXXX";
	int fd = mkstemp(devices);
	int64_t end_ns = clock_mono_ns() + PATIENCE_NS;
	struct fixture f;

	assert_true(fd >= 0);
	close(fd);
	begin(&f, devices);
	device_access_tick(f.access); /* the look begins */
	assert_true(denied(&f) == -1);
	while (denied(&f) == -1 && clock_mono_ns() < end_ns)
		device_access_tick(f.access);
	assert_true(denied(&f) == 0);
	end(&f);
	unlink(devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_absent_until_a_look_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
