// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/measured.h"
#include "pipeline/work_names.h"

#define S (uint64_t)NSEC_PER_SEC

enum { PID = 100, OTHER = 200, SINCE = 5, WORKS = 1 << 12 };

static const uint8_t here[16] = { 0xab };

struct scene {
	struct measured *measured;
	struct gpu_works *works;
	struct gpu_times *times;
	struct work_sink sink;
	uint32_t told, of_pid; /* works that the sink was given; of whom the newest was */
	char symbol[64], uuid[TRACED_UUID]; /* of the newest */
	uint64_t busy_ns;
	struct time_part busy_of;
};

static int on_work(const struct measured_work *work, void *userdata)
{
	struct scene *s = userdata;

	s->told++;
	s->of_pid = work->tgid;
	snprintf(s->symbol, sizeof(s->symbol), "%s", work->symbol);
	snprintf(s->uuid, sizeof(s->uuid), "%s", work->uuid);
	return 0;
}

static bool is_here(const char *uuid, _unused_ void *userdata)
{
	return strncmp(uuid, "GPU-ab", 6) == 0;
}

static void on_busy(_unused_ uint32_t pid, _unused_ uint64_t since_boot_ns, _unused_ const char *uuid,
		    struct time_part part, uint64_t busy_ns, void *userdata)
{
	struct scene *s = userdata;

	s->busy_of = part;
	s->busy_ns += busy_ns;
}

static void scene_begin(struct scene *s)
{
	const struct measured_config config = { is_here, on_busy, s, .expects = false };
	const struct gpu_time rows[] = { { .pid = PID, .since_boot_ns = SINCE },
					 { .pid = OTHER, .since_boot_ns = SINCE } };

	*s = (struct scene){ .sink = { .sink = { .name = "test", .userdata = s }, .work = on_work } };
	assert_int_equal(measured_new(&config, &s->measured), 0);
	assert_int_equal(work_sinks_add(measured_sinks(s->measured), &s->sink), 0);
	s->times = gpu_times_new(rows, 2);
	s->works = gpu_works_new(WORKS, s->times);
	assert_non_null(s->works);
}

static void scene_end(struct scene *s)
{
	measured_free(s->measured);
	gpu_works_free(s->works);
	gpu_times_unref(s->times);
}

static struct gpu_work *add(struct scene *s, uint32_t pid, uint8_t kind)
{
	struct gpu_work *work = &s->works->list[s->works->n++];

	assert_true(s->works->n <= WORKS);
	*work = (struct gpu_work){ .pid = pid, .since_boot_ns = SINCE };
	memcpy(work->uuid, here, sizeof(here));
	work->record.kind = kind;
	return work;
}

static struct gpu_work *add_slice(struct scene *s, uint32_t pid, uint64_t start_s, uint64_t end_s)
{
	struct gpu_work *work = add(s, pid, CUPTI_SLICE);

	work->record.slice.start_ns = start_s * S;
	work->record.slice.end_ns = end_s * S;
	return work;
}

static void add_name(struct scene *s, uint32_t pid, uint64_t hash, const char *text)
{
	struct cupti_name *name = &add(s, pid, CUPTI_NAME)->record.name;

	name->name = hash;
	name->n = (uint8_t)strlen(text);
	name->size = name->n;
	memcpy(name->text, text, name->n);
}

static void take(struct scene *s, uint64_t now_s)
{
	measured_take(s->measured, s->works, now_s * S);
	s->works->n = 0;
}

static void assert_rest(const struct scene *s, uint32_t pid, uint64_t begin_s, uint64_t end_s,
			const char *expected)
{
	struct time_part rest[MEASURED_RESTS];
	uint32_t n = measured_rest(s->measured, pid, (struct time_part){ begin_s * S, end_s * S }, rest);
	char text[200] = "";

	for (uint32_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u-%u", i > 0 ? " " : "",
			 (unsigned)(rest[i].begin_ns / S), (unsigned)(rest[i].end_ns / S));
	assert_string_equal(text, expected);
}

static void what_was_measured_is_left_out(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	assert_rest(&s, PID, 10, 20, "10-20");
	add_slice(&s, PID, 12, 14);
	add_slice(&s, PID, 14, 15); /* goes on */
	add_slice(&s, PID, 17, 18);
	take(&s, 18);
	assert_rest(&s, PID, 10, 20, "10-12 15-17 18-20");
	assert_rest(&s, PID, 12, 15, "");
	assert_rest(&s, PID, 13, 16, "15-16");
	assert_rest(&s, PID, 19, 19, "19-19");
	assert_rest(&s, PID, 13, 13, "");
	/* Nothing of another process. */
	assert_rest(&s, OTHER, 10, 20, "10-20");
	assert_true(measured_has(s.measured, PID));
	assert_false(measured_has(s.measured, OTHER));
	scene_end(&s);
}

/* What is missing may have been work. */
static void time_of_which_something_is_missing_was_not_measured(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	add_slice(&s, PID, 1, 2)->busy_ns = 3;
	add_slice(&s, PID, 2, 3)->missing = 1;
	add_slice(&s, PID, 3, 4)->busy_ns = 4;
	take(&s, 4);
	assert_rest(&s, PID, 0, 5, "0-1 2-3 4-5");
	assert_int_equal(s.busy_ns, 7);
	assert_int_equal(s.busy_of.begin_ns, 3 * S);
	/* A device that the node does not have. */
	memset(add_slice(&s, PID, 4, 5)->uuid, 1, 16);
	take(&s, 5);
	assert_int_equal(s.busy_of.begin_ns, 3 * S);
	scene_end(&s);
}

static void works_have_their_names_and_devices(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	add_name(&s, PID, 7, "mine");
	add_name(&s, OTHER, 7, "theirs");
	add(&s, PID, CUPTI_KERNEL)->record.work.name = 7;
	take(&s, 1);
	assert_int_equal(s.told, 1);
	assert_int_equal(s.of_pid, PID);
	assert_string_equal(s.symbol, "mine");
	assert_string_equal(s.uuid, "GPU-ab000000-0000-0000-0000-000000000000");
	add(&s, OTHER, CUPTI_KERNEL)->record.work.name = 7;
	take(&s, 2);
	assert_string_equal(s.symbol, "theirs");
	add(&s, PID, CUPTI_COPY)->record.work.name = 7;
	take(&s, 3);
	assert_string_equal(s.symbol, "");
	/* It names no device that is not there. */
	memset(add(&s, PID, CUPTI_COPY)->uuid, 1, 16);
	take(&s, 4);
	assert_string_equal(s.uuid, "");
	scene_end(&s);
}

static void a_process_that_has_ended_is_forgotten(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	add_name(&s, PID, 7, "mine");
	add_slice(&s, PID, 1, 2)->record.slice.state = CUPTI_ON;
	take(&s, 2);
	assert_true(measured_is_on(s.measured, PID));
	s.times->rows[0].gone = 1;
	take(&s, 3);
	/* What waits is judged by it. */
	assert_rest(&s, PID, 1, 2, "");
	take(&s, 30);
	assert_false(measured_has(s.measured, PID));
	/* The PID's next one begins anew. */
	s.times->rows[0].gone = 0;
	add(&s, PID, CUPTI_KERNEL)->record.work.name = 7;
	take(&s, 31);
	assert_string_equal(s.symbol, "");
	/* And what an older connection says is not its own. */
	add_slice(&s, PID, 4, 5)->since_boot_ns = SINCE - 1;
	take(&s, 32);
	assert_int_equal(measured_dropped(s.measured), 1);
	assert_rest(&s, PID, 4, 5, "4-5");
	scene_end(&s);
}

/* Of one process the newest times are kept, and of one user not all names. */
static void what_a_process_tells_is_bounded(_unused_ void **state)
{
	char text[CUPTI_NAME_PART + 1];
	struct scene s;

	scene_begin(&s);
	for (uint32_t i = 0; i < 2 * MEASURED_TIMES; i++)
		add_slice(&s, PID, 10 * i + 1, 10 * i + 2);
	take(&s, 1000);
	assert_rest(&s, PID, 10 * (MEASURED_TIMES - 1), 10 * MEASURED_TIMES + 3, "310-321 322-323");
	for (uint64_t i = 0; i < 8; i++) {
		for (uint64_t k = 0; k < WORKS; k++) {
			struct cupti_name *name;

			snprintf(text, sizeof(text), "%064llu", (unsigned long long)(i * WORKS + k));
			add_name(&s, PID, i * WORKS + k, text);
			name = &s.works->list[k].record.name;
			name->size = CUPTI_NAME_MAX;
		}
		take(&s, 1000);
	}
	assert_true(measured_dropped(s.measured) > 6 * WORKS);
	/* Another user's has room. */
	add_name(&s, OTHER, 1, "theirs");
	s.works->list[0].uid = 1;
	add(&s, OTHER, CUPTI_KERNEL)->record.work.name = 1;
	s.works->list[1].uid = 1;
	take(&s, 1000);
	assert_string_equal(s.symbol, "theirs");
	scene_end(&s);
}

static void a_sink_without_time_loses_and_counts(_unused_ void **state)
{
	struct scene s;

	scene_begin(&s);
	s.sink.sink.turn_ns = 1;
	for (uint32_t i = 0; i < 1000; i++)
		add(&s, PID, CUPTI_KERNEL);
	take(&s, 1);
	assert_true(s.told < 1000);
	assert_int_equal(s.told + measured_dropped(s.measured), 1000);
	work_sinks_remove(measured_sinks(s.measured), &s.sink);
	add(&s, PID, CUPTI_KERNEL);
	take(&s, 2);
	assert_int_equal(measured_sinks(s.measured)->list.n, 0);
	scene_end(&s);
}

static void parts_of_names(_unused_ void **state)
{
	struct cupti_name part = { .n = 3, .size = 6, .name = 9, .text = "_Z1" };
	struct work_names names;

	work_names_init(&names, 2);
	assert_true(work_names_told(&names, 1, &part) > 0);
	assert_int_equal(work_names_told(&names, 1, &part), 0); /* again */
	part.at = 4;
	assert_int_equal(work_names_told(&names, 1, &part), 0); /* a part is missing */
	part.at = 3;
	memcpy(part.text, "fvx", 3);
	part.size = 5;
	work_names_told(&names, 1, &part);
	assert_string_equal(work_names_symbol(&names, work_names_find(&names, 1, 9)), "_Z1fvx");
	assert_int_equal(work_names_find(&names, 2, 9), 0);
	part = (struct cupti_name){ .n = 5, .size = 5, .name = 10, .text = "_Z1fv" };
	assert_true(work_names_told(&names, 1, &part) > 0);
	assert_string_equal(work_names_shown(&names, work_names_find(&names, 1, 10)), "f()");
	assert_int_equal(work_names_told(&names, 2, &part), 0); /* no room */
	work_names_forget(&names, 1);
	assert_int_equal(work_names_find(&names, 1, 10), 0);
	assert_true(work_names_told(&names, 2, &part) > 0);
	work_names_done(&names);
}

/* A command that has all its programs measure knows so before they say it, and until they say otherwise. */
static void who_is_asked_to_measure(_unused_ void **state)
{
	const struct measured_config config = { .expects = true };
	struct scene s;

	scene_begin(&s);
	measured_free(s.measured);
	assert_int_equal(measured_new(&config, &s.measured), 0);
	assert_true(measured_has(s.measured, PID) && measured_is_on(s.measured, PID));
	assert_rest(&s, PID, 1, 2, "1-2");
	add_slice(&s, PID, 1, 1)->record.slice.state = CUPTI_OTHER;
	take(&s, 2);
	assert_false(measured_is_on(s.measured, PID));
	add_slice(&s, PID, 2, 3)->record.slice.state = CUPTI_ON;
	take(&s, 3);
	assert_true(measured_is_on(s.measured, PID) && measured_is_on(s.measured, OTHER));
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_measured_is_left_out),
		cmocka_unit_test(time_of_which_something_is_missing_was_not_measured),
		cmocka_unit_test(works_have_their_names_and_devices),
		cmocka_unit_test(a_process_that_has_ended_is_forgotten),
		cmocka_unit_test(what_a_process_tells_is_bounded),
		cmocka_unit_test(a_sink_without_time_loses_and_counts),
		cmocka_unit_test(parts_of_names),
		cmocka_unit_test(who_is_asked_to_measure),
	};

	return cmocka_run_group_tests_name("measured", tests, NULL, NULL);
}
