// SPDX-License-Identifier: Apache-2.0
/* What launches are called: handles, modules, questions and answers. */
#include <errno.h>

#include "cuda/private.h"
#include "scene.h"

enum { MODULE = 0x500, OTHER_MODULE = 0x600, F = 0x1000, G = 0x2000, HOST = 0x400000 };

/* ---- without naming ---- */

static void named_by_its_handle(void **state)
{
	struct scene *s = *state;
	const struct kernel *kernel;

	made_for(s, F, MODULE, "_Z3addPf");
	launch_function(s, 0, F);
	launch_function(s, 0, F);
	launch_function(s, 0, G);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 2);
	assert_kernel(s, "_Z3addPf", 2);
	assert_kernel(s, "0x2000", 1);
	kernel = shown_kernel(s, PID, UUID0, "_Z3addPf")->kernel;
	assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
	assert_string_equal(kernel->name, "_Z3addPf");
	assert_string_equal(kernel->brief, "_Z3addPf");
	assert_string_equal(kernel->file, "");
	assert_int_equal(kernel->figures[KERNEL_REGISTERS], -1);
	assert_int_equal(shown_kernel(s, PID, UUID0, "0x2000")->kernel->source, KERNEL_SOURCE_UNRESOLVED);
}

static void what_is_no_name(void **state)
{
	struct scene *s = *state;
	union {
		struct trace_name event;
		char room[sizeof(struct trace_name) + 8];
	} odd = { .event = {
			  .header = { .type = TRACE_EVENT_NAME, .op = TRACE_OP_FUNCTION_NAME, .tgid = PID },
			  .handle = F,
			  .of = MODULE,
			  .name_n = UINT32_MAX } };
	struct cuda_stats stats;

	memcpy(odd.room + sizeof(odd.event),
	       "ab\xff"
	       "defgh",
	       8);
	cuda_event(s->cuda, &odd.event.header, sizeof(odd.event) - 1);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.unknown_events, 1);
	/* Not ended, longer than it is, and no characters. */
	cuda_event(s->cuda, &odd.event.header, sizeof(odd.event) + 4);
	cuda_event(s->cuda, &odd.event.header, sizeof(odd.event) + 4);
	made_for(s, 0, MODULE, "none");
	made_for(s, G, MODULE, "");
	launch_function(s, 0, F);
	launch_function(s, 0, G);
	launch_function(s, 0, 0);
	window(s);
	assert_kernel(s, "ab?d", 1);
	assert_kernel(s, "0x2000", 1);
	assert_kernel(s, "", 1);
}

static void aliases(void **state)
{
	struct scene *s = *state;

	made_for(s, F, MODULE, "add");
	CALL(s, FUNCTION_ALIAS, .handle = F + 1, .addr = F);
	CALL(s, FUNCTION_ALIAS, .handle = F + 2, .addr = F + 1);
	launch_function(s, 0, F + 2);
	launch_function(s, 0, F);
	launch_function(s, 0, F + 1);
	/* In a circle, of itself, of none. */
	CALL(s, FUNCTION_ALIAS, .handle = G, .addr = G + 1);
	CALL(s, FUNCTION_ALIAS, .handle = G + 1, .addr = G);
	CALL(s, FUNCTION_ALIAS, .handle = G + 2, .addr = G + 2);
	CALL(s, FUNCTION_ALIAS, .handle = G + 3, .addr = 0);
	CALL(s, FUNCTION_ALIAS, .handle = 0, .addr = G);
	launch_function(s, 0, G);
	launch_function(s, 0, G + 2);
	launch_function(s, 0, G + 3);
	window(s);
	assert_kernel(s, "add", 3);
	assert_kernel(s, "0x2002", 1);
	assert_kernel(s, "0x2003", 1);
	assert_int_equal(shown_kernels(s, PID), 4);
	/* Gone with the module of what it stands for. */
	CALL(s, MODULE_UNLOAD, .handle = MODULE);
	launch_function(s, 0, F + 2);
	window(s);
	assert_kernel(s, "add", 3);
	assert_kernel(s, "0x1002", 1);
}

static void values_come_again(void **state)
{
	struct scene *s = *state;

	made_for(s, F, MODULE, "first");
	made_for(s, F, MODULE, "first"); /* asked for again: the same */
	launch_function(s, 0, F);
	CALL(s, MODULE_UNLOAD, .handle = OTHER_MODULE);
	launch_function(s, 0, F);
	CALL(s, MODULE_UNLOAD, .handle = MODULE);
	launch_function(s, 0, F);
	made_for(s, F, OTHER_MODULE, "second");
	launch_function(s, 0, F);
	/* Its end was not seen. */
	made_for(s, F, OTHER_MODULE, "third");
	launch_function(s, 0, F);
	/* The module's was not. */
	CALL(s, MODULE_LOAD, .handle = OTHER_MODULE, .addr = 0x10);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "first", 2);
	assert_kernel(s, "second", 1);
	assert_kernel(s, "third", 1);
	assert_kernel(s, "0x1000", 2); /* before it was made, and after */
	/* Loaded again, the kernel is what it was. */
	made_for(s, G, MODULE, "first");
	launch_function(s, 0, G);
	window(s);
	assert_kernel(s, "first", 3);
	assert_int_equal(shown_kernels(s, PID), 4);
}

static void name_asked_for(void **state)
{
	struct scene *s = *state;

	launch_function(s, 0, F);
	launch_function(s, 0, G);
	made_for(s, F, 0, "late");
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "late", 2);
	assert_kernel(s, "0x2000", 1);
	assert_int_equal(shown_kernels(s, PID), 2);
	made_for(s, F, 0, "another"); /* the value came again */
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "late", 2);
	assert_kernel(s, "another", 1);
}

static void exec_forgets(void **state)
{
	struct scene *s = *state;

	made_for(s, F, MODULE, "before");
	launch_function(s, 0, F);
	scene_end(s, TRACE_EVENT_EXEC);
	s->now_us += 10;
	scene_process(s, PID, 2);
	launch_function(s, 0, F);
	window(s);
	assert_int_equal(s->view->processes_n, 2);
	assert_true(s->view->processes[0].exited);
	assert_int_equal(s->view->processes[0].kernels_n, 1);
	assert_int_equal(s->view->processes[1].kernels_n, 1);
	assert_string_equal(s->view->kernels[s->view->processes[0].kernels_first].kernel->symbol, "before");
	assert_string_equal(s->view->kernels[s->view->processes[1].kernels_first].kernel->symbol, "0x1000");
	window(s);
	assert_int_equal(s->view->kernels_n, 1);
}

static void too_many(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;
	char text[4096];

	for (uint32_t i = 0; i < HANDLES_MAX + 10; i++)
		made_for(s, 0x10000 + i, MODULE, "same");
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.overflow[CUDA_LIMIT_NAMES], 10);
	assert_int_equal(s->cuda->names_bytes, HANDLES_MAX * 5);
	CALL(s, MODULE_UNLOAD, .handle = MODULE);
	assert_int_equal(s->cuda->names_bytes, 0);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (uint32_t i = 0; i < 10000; i++)
		made_for(s, 0x10000 + i, MODULE, text);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.overflow[CUDA_LIMIT_NAMES], 10 + 10000 - NAMES_BYTES_OF_ONE / 4096);
	/* Others have room all the same, until there is none at all. */
	for (uint32_t k = 1; k < 6; k++) {
		s->tgid = PID + k;
		scene_process(s, s->tgid, 1 + k);
		for (uint32_t i = 0; i < NAMES_BYTES_OF_ONE / 4096 + 1; i++)
			made_for(s, 0x10000 + i, MODULE, text);
		assert_int_equal(s->cuda->names_bytes, MIN(k + 1, 4u) * NAMES_BYTES_OF_ONE);
	}
	for (uint32_t k = 5; k > 0; k--) {
		s->tgid = PID + k;
		scene_end(s, TRACE_EVENT_EXIT);
	}
	s->tgid = PID;
	assert_int_equal(s->cuda->names_bytes, NAMES_BYTES_OF_ONE);
	for (uint32_t i = 0; i < MODULES_MAX + 2; i++)
		CALL(s, MODULE_LOAD, .handle = 0x9000 + i, .addr = 0);
	assert_int_equal(s->cuda->processes[0]->modules.used, MODULES_MAX);
	scene_end(s, TRACE_EVENT_EXIT);
	assert_int_equal(s->cuda->names_bytes, 0);
}

/* ---- questions ---- */

static void asked_once(void **state)
{
	struct scene *s = *state;
	const struct cuda_function *asked = &s->asked[0].function;

	name(s, TRACE_OP_MODULE_FILE, MODULE, 0, "/opt/k.cubin");
	CALL(s, MODULE_LOAD, .handle = OTHER_MODULE, .addr = 0xabc0);
	CALL(s, MODULE_LOAD, .header.flags = TRACE_FLAG_NO_RESULT, .handle = 0, .addr = 0xdef0);
	assert_int_equal(s->images_n, 2);
	assert_int_equal(s->images[0], 0xabc0);
	assert_int_equal(s->images[1], 0xdef0);
	made_for(s, F, MODULE, "add");
	made_for(s, G, OTHER_MODULE, "mul");
	assert_int_equal(s->asked_n, 0);
	for (unsigned i = 0; i < 3; i++) {
		launch_function(s, 0, F);
		s->now_us += 1000000;
		window(s);
	}
	assert_int_equal(s->asked_n, 1);
	assert_int_equal(asked->tgid, PID);
	assert_int_equal(asked->incarnation, 1);
	assert_int_equal(asked->function, F);
	assert_int_equal(asked->sm, 90);
	assert_string_equal(s->asked[0].symbol, "add");
	assert_string_equal(s->asked[0].path, "/opt/k.cubin");
	assert_int_equal(asked->image, 0);
	assert_kernel(s, "add", 3);
	assert_string_equal(shown_kernel(s, PID, UUID0, "add")->kernel->file, "/opt/k.cubin");
	assert_false(shown_kernel(s, PID, UUID0, "add")->has_series);
	made_for(s, G, 0, "mul"); /* asked for by the program: what it is of stays known */
	launch_function(s, 0, G);
	assert_int_equal(s->asked_n, 2);
	assert_int_equal(s->asked[1].function.image, 0xabc0);
	assert_string_equal(s->asked[1].path, "");
	assert_int_not_equal(s->asked[1].function.id, asked->id);
}

static void answered(void **state)
{
	struct scene *s = *state;
	struct kernel *kernel = kernel_of("add", "libk.so", 100);

	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "0x1000", 1);
	cuda_kernel(s->cuda, s->asked[0].function.id, kernel);
	launch_function(s, 0, F);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_kernel(s, "add", 2);
	assert_ptr_equal(s->view->kernels[0].kernel, kernel);
	assert_int_equal(atomic_load(&kernel->refs), 3);
	/* Once only. */
	answer(s, 0, "sub", "libk.so", 0);
	window(s);
	assert_kernel(s, "add", 2);
	assert_int_equal(atomic_load(&kernel->refs), 3);
	trace_view_unref(s->view);
	s->view = NULL;
	assert_int_equal(atomic_load(&kernel->refs), 2);
	scene_end(s, TRACE_EVENT_EXIT);
	window(s);
	assert_ptr_equal(s->view->kernels[0].kernel, kernel);
	window(s);
	assert_int_equal(s->view->kernels_n, 0);
	assert_int_equal(atomic_load(&kernel->refs), 1);
	assert_int_equal(s->cuda->rows_n, 0);
	kernel_unref(kernel);
}

static void asked_again(void **state)
{
	struct scene *s = *state;

	s->answer = -EAGAIN;
	for (unsigned i = 0; i < 100; i++)
		launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 1);
	window(s);
	window(s);
	assert_int_equal(s->asked_n, 3);
	launch_function(s, 0, F);
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 4);
	assert_int_equal(s->cuda->questions.count, 0);
	answer(s, 3, "wrong", "", 0); /* nobody is waiting for it */
	window(s);
	assert_int_equal(s->asked_n, 5);
	s->answer = 0;
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 6);
	answer(s, 0, "wrong", "", 0);
	answer(s, 5, "add", "", 0);
	window(s);
	launch_function(s, 0, F);
	window(s);
	assert_int_equal(s->asked_n, 6);
	assert_kernel(s, "add", 104);
	assert_int_equal(shown_kernels(s, PID), 1);
}

/* Nobody knows whether there will be another launch. */
static void asked_again_without_a_launch(void **state)
{
	struct scene *s = *state;

	s->answer = -EAGAIN;
	for (uint64_t i = 0; i < 4; i++)
		launch_function(s, 0, F + i);
	CALL(s, MODULE_LOAD, .handle = MODULE, .addr = 0);
	made_for(s, F + 3, MODULE, "new"); /* what was launched is gone, and is not asked about */
	assert_int_equal(s->asked_n, 4);
	window(s);
	assert_int_equal(s->asked_n, 5); /* one that must wait makes the others wait */
	scene_end(s, TRACE_EVENT_EXIT);
	s->answer = 0;
	window(s);
	assert_int_equal(s->asked_n, 8);
	answer(s, 5, "a", "", 0);
	answer(s, 6, "b", "", 0);
	answer(s, 7, "c", "", 0);
	window(s);
	assert_kernel(s, "a", 1);
	assert_kernel(s, "b", 1);
	assert_kernel(s, "c", 1);
	assert_kernel(s, "0x1003", 1);
	assert_int_equal(s->asked_n, 8);
}

static void never_answered(void **state)
{
	struct scene *s = *state;
	struct kernel *none = NULL;

	s->answer = -EINVAL;
	made_for(s, F, MODULE, "add");
	launch_function(s, 0, F);
	window(s);
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 1);
	s->answer = 0;
	launch_function(s, 0, G);
	cuda_kernel(s->cuda, s->asked[1].function.id, none);
	window(s);
	assert_kernel(s, "add", 2);
	assert_kernel(s, "0x2000", 1);
	assert_true(shown_kernel(s, PID, UUID0, "add")->kernel->source == KERNEL_SOURCE_HANDLE);
	assert_int_equal(s->cuda->questions.count, 0);
}

static void answered_at_once(void **state)
{
	struct scene *s = *state;

	for (s->answer = -EINVAL; s->answer <= 0; s->answer += EINVAL) {
		s->at_once = kernel_of("add", "", 1);
		launch_function(s, 0, F + (uint64_t)-s->answer);
		kernel_unref(s->at_once);
	}
	window(s);
	assert_kernel(s, "add", 2);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_int_equal(s->cuda->questions.count, 0);
}

/* What was launched stays, and so does what is asked about it; the handle means another kernel by then. */
static void answers_after_the_module(void **state)
{
	struct scene *s = *state;

	made_for(s, F, MODULE, "add");
	launch_function(s, 0, F);
	CALL(s, MODULE_UNLOAD, .handle = MODULE);
	assert_int_equal(s->cuda->questions.count, 1);
	window(s);
	assert_false(shown_kernel(s, PID, UUID0, "add")->has_series); /* more will be told of it */
	made_for(s, F, MODULE, "sub");
	launch_function(s, 0, F);
	launch_function(s, 0, F);
	assert_int_equal(s->asked_n, 2);
	answer(s, 0, "add", "a.so", 7);
	window(s);
	assert_kernel(s, "add", 1);
	assert_kernel(s, "sub", 2);
	assert_string_equal(shown_kernel(s, PID, UUID0, "add")->kernel->file, "a.so");
	assert_true(shown_kernel(s, PID, UUID0, "add")->has_series);
	answer(s, 1, "sub", "b.so", 7);
	launch_function(s, 0, F);
	window(s);
	assert_kernel(s, "add", 1);
	assert_kernel(s, "sub", 3);
	assert_string_equal(shown_kernel(s, PID, UUID0, "sub")->kernel->file, "b.so");
	assert_int_equal(shown_kernels(s, PID), 2);
	assert_int_equal(s->asked_n, 2);
	assert_int_equal(s->cuda->questions.count, 0);
}

static void answers_after_the_end(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	launch_function(s, 0, G);
	scene_end(s, TRACE_EVENT_EXEC);
	s->now_us += 10;
	scene_process(s, PID, 2);
	launch_function(s, 0, G);
	window(s);
	answer(s, 0, "before", "", 0); /* not of the one that has its PID */
	answer(s, 1, "after", "", 0);
	window(s);
	assert_int_equal(s->view->kernels_n, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct traced_kernel *k = &s->view->kernels[i];

		assert_string_equal(k->kernel->symbol,
				    s->view->processes[k->process].exited ? "before" : "after");
	}
	window(s);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_kernel(s, "after", 1);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.answers, 2);
	assert_int_equal(stats.late_answers, 0);
}

static void stale_answers(void **state)
{
	struct scene *s = *state;
	struct cuda_stats stats;

	launch_function(s, 0, G);
	answer(s, 0, "right", "", 0);
	answer(s, 0, "wrong", "", 0);
	launch_function(s, 0, F);
	scene_end(s, TRACE_EVENT_EXEC);
	s->now_us += 10;
	scene_process(s, PID, 2);
	launch_function(s, 0, G);
	for (unsigned i = 0; i < LINGER_WINDOWS + 2; i++)
		window(s);
	answer(s, 1, "wrong", "", 0); /* of the one before, which is forgotten */
	cuda_kernel(s->cuda, 0, NULL);
	cuda_kernel(s->cuda, UINT64_MAX, NULL);
	answer(s, 2, "right", "", 0);
	window(s);
	assert_int_equal(shown_kernels(s, PID), 1);
	assert_kernel(s, "right", 1);
	cuda_stats(s->cuda, &stats);
	assert_int_equal(stats.answers, 2);
	assert_int_equal(stats.late_answers, 4);
	assert_int_equal(s->cuda->questions.count, 0);
}

/* A launch during which the runtime made so many handles, of the names n0, n1, ... */
static void launch_making(struct scene *s, uint64_t host, unsigned handles)
{
	uint64_t begin = s->now_us;

	for (unsigned i = 0; i < handles; i++) {
		char text[] = { 'n', (char)('0' + i), 0 };

		s->now_us = begin + 10 * (i + 1);
		made_for(s, F + 16 * i, MODULE, text);
	}
	s->now_us = begin;
	s->duration_us = 100;
	launch_function(s, 0, host);
}

/* What the launch made is said with the question, where there is no doubt, as the last resort. */
static void asked_with_the_handle_that_the_launch_made(void **state)
{
	struct scene *s = *state;

	s->now_us = 10;
	made_for(s, G, OTHER_MODULE, "before");
	s->now_us = 1000;
	launch_making(s, HOST, 1);
	s->now_us = 2000;
	launch_making(s, HOST + 1, 2);
	s->now_us = 3000;
	launch_function(s, 0, HOST + 2);
	launch_function(s, 0, G);
	assert_int_equal(s->asked_n, 4);
	assert_string_equal(s->asked[0].symbol, "n0");
	assert_true(s->asked[0].function.symbol_last);
	assert_int_equal(s->asked[0].function.function, HOST);
	assert_string_equal(s->asked[1].symbol, "");
	assert_string_equal(s->asked[2].symbol, "");
	assert_string_equal(s->asked[3].symbol, "before");
	assert_false(s->asked[3].function.symbol_last);
}

static void registrations_have_no_results(void **state)
{
	struct scene *s = *state;

	s->flags = TRACE_FLAG_NO_RESULT;
	CALL(s, FUNCTION_REGISTER, .handle = HOST);
	s->flags = 0;
	launch_function(s, 0, HOST);
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup, scene_teardown)
#define NAMING(test) cmocka_unit_test_setup_teardown(test, scene_setup_naming, scene_teardown)
	const struct CMUnitTest tests[] = {
		TEST(named_by_its_handle),
		TEST(what_is_no_name),
		TEST(aliases),
		TEST(values_come_again),
		TEST(name_asked_for),
		TEST(exec_forgets),
		TEST(too_many),
		NAMING(asked_once),
		NAMING(answered),
		NAMING(asked_again),
		NAMING(asked_again_without_a_launch),
		NAMING(never_answered),
		NAMING(answered_at_once),
		NAMING(answers_after_the_module),
		NAMING(answers_after_the_end),
		NAMING(stale_answers),
		NAMING(asked_with_the_handle_that_the_launch_made),
		NAMING(registrations_have_no_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
