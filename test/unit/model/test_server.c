// SPDX-License-Identifier: Apache-2.0
/* GPUs' time and energy of real readings: test/e2e/inference.py. */
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "model/private.h"

static struct model *model;

static int make_model(_unused_ void **state)
{
	const struct model_limits limits = { 0 };

	return model_new(&limits, &model);
}

static int free_model(_unused_ void **state)
{
	model_free(model);
	return 0;
}

static struct found_server found(uint32_t pid)
{
	return (struct found_server){
		.id = { pid, 7 }, .kind = SERVER_VLLM, .port = 8000, .members_n = 1, .members = { { pid, 7 } }
	};
}

static void say(uint32_t pid, double generated)
{
	struct server_page page = { 0 };

	page.v[SERVER_TOKENS_GENERATED] = generated;
	page.p[SERVER_TOKENS_GENERATED] = PRESENCE_PRESENT;
	model_set_server_page(model, (struct process_id){ pid, 7 }, &page, "");
}

static const struct inference_server *shown(uint32_t i)
{
	static struct servers servers;

	servers_publish(&model->servers, &servers);
	assert_true(i < servers.n);
	return &servers.list[i];
}

static void counters_go_on(_unused_ void **state)
{
	struct found_server list[2] = { found(1), found(2) };

	model_set_servers(model, list, 2, 0);
	assert_int_equal(shown(0)->state, SERVER_STATE_NEW);
	say(2, 100);
	say(2, 150);
	say(2, 20); /* it has begun anew */
	assert_true(shown(1)->v[SERVER_TOKENS_GENERATED] == 170);
	assert_int_equal(shown(1)->state, SERVER_STATE_READ);
	/* The first one is gone: the other one's sums go on. */
	model_set_servers(model, &list[1], 1, 0);
	say(2, 30);
	assert_true(shown(0)->v[SERVER_TOKENS_GENERATED] == 180);
	/* Another process with its PID is another server. */
	list[1].id.start_ticks = 8;
	model_set_servers(model, &list[1], 1, 0);
	assert_int_equal(shown(0)->state, SERVER_STATE_NEW);
	assert_int_equal(shown(0)->p[SERVER_TOKENS_GENERATED], PRESENCE_ABSENT);
}

static void a_page_that_fails(_unused_ void **state)
{
	const struct found_server list[1] = { found(3) };
	struct server_page page = { 0 };

	model_set_servers(model, list, 1, 0);
	page.v[SERVER_RUNNING] = 4;
	page.p[SERVER_RUNNING] = PRESENCE_PRESENT;
	model_set_server_page(model, list[0].id, &page, "");
	say(3, 5);
	assert_int_equal(shown(0)->p[SERVER_RUNNING], PRESENCE_ABSENT);
	model_set_server_page(model, list[0].id, NULL, "refused\xff");
	assert_int_equal(shown(0)->state, SERVER_STATE_FAILED);
	assert_string_equal(shown(0)->error, "refused?");
	/* What it has counted stays, what it does now is not known. */
	assert_true(shown(0)->v[SERVER_TOKENS_GENERATED] == 5);
	assert_int_equal(shown(0)->p[SERVER_RUNNING], PRESENCE_ABSENT);
}

static void quotients_want_both(_unused_ void **state)
{
	const struct found_server list[1] = { found(4) };
	struct inference_server *s = &model->servers.list[0].s;

	model_set_servers(model, list, 1, 0);
	say(4, 1000);
	s->v[SERVER_ENERGY] = 50;
	s->p[SERVER_ENERGY] = PRESENCE_PRESENT;
	say(4, 1500);
	/* The first page came before any energy was known. */
	assert_int_equal(shown(0)->p[SERVER_TOKENS_PER_JOULE], PRESENCE_ABSENT);
	model->servers.list[0].marks_n = 0;
	say(4, 2000);
	s->v[SERVER_ENERGY] = 150;
	s->p[SERVER_ENERGY] |= PRESENCE_ESTIMATED;
	say(4, 2400);
	assert_true(shown(0)->v[SERVER_TOKENS_PER_JOULE] == 4);
	assert_int_equal(shown(0)->p[SERVER_TOKENS_PER_JOULE], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(shown(0)->p[SERVER_TOKENS_PER_GPU_SECOND], PRESENCE_ABSENT);
	for (unsigned i = 0; i < 3 * SERVER_MARKS_MAX; i++)
		say(4, 2400);
	assert_true(model->servers.list[0].marks_n <= SERVER_MARKS_MAX);
	/* Nothing was used meanwhile. */
	assert_int_equal(shown(0)->p[SERVER_TOKENS_PER_JOULE], PRESENCE_ABSENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counters_go_on, make_model, free_model),
		cmocka_unit_test_setup_teardown(a_page_that_fails, make_model, free_model),
		cmocka_unit_test_setup_teardown(quotients_want_both, make_model, free_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
