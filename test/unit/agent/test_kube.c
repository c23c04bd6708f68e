// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <stdio.h>
#include <string.h>

#include "agent/kube.h"
#include "base/clock.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct kube *kube;
static struct source source; /* as of the newest snapshot */
static double pods, bytes; /* the same; -1: absent */
static unsigned exporters, labels; /* that have been passed on */

static int begin(void **state)
{
	(void)state;
	exporters = labels = 0;
	if (sd_event_new(&event) < 0 || publisher_new(&publisher) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(void **state)
{
	(void)state;
	kube_free(kube);
	kube = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	return 0;
}

static void on_exporters(const struct kube_exporter *list, uint32_t n, void *userdata)
{
	(void)userdata;
	assert_int_equal(n, 1);
	assert_string_equal(list->pod, "dcgm");
	assert_int_equal(strlen(list->uid), sizeof(list->uid) - 1);
	assert_string_equal(list->address, "");
	exporters++;
}

static void on_labels(const struct kube_label *list, uint32_t n, void *userdata)
{
	(void)userdata;
	assert_int_equal(n, 1);
	assert_int_equal(list->value[0], '?');
	assert_int_equal(strlen(list->value), sizeof(list->value) - 1);
	labels++;
}

static void start(const char *how, bool quiet)
{
	char program[4096];
	struct kube_config config = {
		.program = program, .quiet = quiet, .exporters = on_exporters, .labels = on_labels
	};

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_kube", test_build_root());
	snprintf(config.settings.context, sizeof(config.settings.context), "%s", how);
	assert_int_equal(kube_new(event, model, &config, &kube), 0);
}

static double figure(const struct snapshot *s, enum agent_metric metric)
{
	return presence_is(s->agent_p[metric]) ? s->agent[metric] : -1;
}

static void turn(void)
{
	struct snapshot *snapshot;

	kube_tick(kube);
	assert_true(sd_event_run(event, 100000) >= 0);
	assert_int_equal(model_publish(model, publisher), 0);
	snapshot = publisher_get(publisher);
	source = snapshot->sources[SOURCE_KUBE];
	pods = figure(snapshot, AGENT_KUBE_PODS);
	bytes = figure(snapshot, AGENT_KUBE_BYTES);
	snapshot_unref(snapshot);
}

/* Runs until the source says that it is well, or not. */
static void wait_state(enum reading_state wanted)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	do {
		assert_true(clock_mono_ns() < until_ns);
		turn();
	} while (!source.in_use || source.state != wanted);
}

static void passes_tables_on(void **state)
{
	(void)state;
	start("well", false);
	wait_state(READING_OK);
	turn();
	assert_true(pods == 2);
	assert_true(bytes == 1000);
	assert_int_equal(exporters, 1);
	assert_int_equal(labels, 1);
	assert_true(kube_pid(kube) > 0);
}

static void bounds_errors(void **state)
{
	(void)state;
	start("fails", true);
	wait_state(READING_FAILED);
	assert_true(strlen(source.error) > 200);
	assert_non_null(strstr(source.error, "Kubernetes API: eee"));
}

static void a_refusal_is_no_failure_of_who_did_not_ask(void **state)
{
	int64_t until_ns = clock_mono_ns() + NSEC_PER_SEC;

	(void)state;
	start("refuses", true);
	while (clock_mono_ns() < until_ns)
		turn();
	assert_false(source.in_use);
	assert_true(pods == -1);
	kube_free(kube);
	start("refuses", false);
	wait_state(READING_FAILED);
}

static void once_in_use_a_refusal_is_a_failure(void **state)
{
	(void)state;
	start("well, then refuses", true);
	wait_state(READING_OK);
	wait_state(READING_FAILED);
}

static void a_process_that_lies_is_replaced(void **state)
{
	static const char *const lies[] = { "table of no kind", "another digest",  "a digest of nothing",
					    "strange outcome",  "strange message", "ends" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		start(lies[i], false);
		wait_state(READING_FAILED);
		if (!strstr(source.error, "gpusonde-kube, ended"))
			fail_msg("%s: %s", lies[i], source.error);
		kube_free(kube);
		kube = NULL;
		model_free(model);
		assert_int_equal(model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model), 0);
	}
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(passes_tables_on),
		TEST(bounds_errors),
		TEST(a_refusal_is_no_failure_of_who_did_not_ask),
		TEST(once_in_use_a_refusal_is_a_failure),
		TEST(a_process_that_lies_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
