// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>

#include "base/clock.h"
#include "cmd/top/growth.h"
#include "view/snapshot/read.h"

enum { BEGIN_S = 1000 };

/* A document of second @at_s, of a machine whose sums are @sum. */
static struct sample *sample_at(int at_s, double sum)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	struct snapshot *s = calloc(1, sizeof(*s));
	struct host_device *disk = &s->host.devices[HOST_DISKS].list[0];

	atomic_init(&sample->references, 1);
	strbuf_init(&sample->text, 0);
	sample->snapshot = s;
	s->real_ns = (BEGIN_S + at_s) * NSEC_PER_SEC;
	s->boot_ns = BEGIN_S * NSEC_PER_SEC; /* as snapshot_read() has it: the same in all documents */
	s->host.read = true;
	s->host.v[HOST_CPU_USER] = sum;
	s->host.v[HOST_CPU_IDLE] = 3 * sum;
	s->host.p[HOST_CPU_USER] = s->host.p[HOST_CPU_IDLE] = PRESENCE_PRESENT;
	s->host.devices[HOST_DISKS].n = 1;
	snprintf(disk->name, sizeof(disk->name), "vda");
	disk->v[DISK_READ_BYTES] = sum;
	disk->p[DISK_READ_BYTES] = PRESENCE_PRESENT;
	return sample;
}

static void add_server(struct sample *sample, int read_before_s, double tokens)
{
	struct inference_server *server = &sample->snapshot->servers.list[0];

	sample->snapshot->servers.n = 1;
	server->id.pid = 7;
	server->read_boot_ns = sample->snapshot->boot_ns - read_before_s * NSEC_PER_SEC;
	server->v[SERVER_TOKENS_GENERATED] = tokens;
	server->p[SERVER_TOKENS_GENERATED] = PRESENCE_PRESENT;
}

static double disk_of(const struct sample *sample)
{
	return growth_device(sample, HOST_DISKS, &sample->snapshot->host.devices[HOST_DISKS].list[0],
			     DISK_READ_BYTES);
}

static double tokens_of(const struct sample *sample)
{
	return growth_server(sample, &sample->snapshot->servers.list[0], SERVER_TOKENS_GENERATED);
}

static bool is_about(double a, double b)
{
	return a > b - 1e-6 && a < b + 1e-6;
}

static void sums_grow(_unused_ void **state)
{
	struct sample *a = sample_at(0, 100), *b = sample_at(2, 140), *again = sample_at(2, 140);
	struct sample *less = sample_at(3, 10), *late = sample_at(300, 1000);

	growth_follow(a, NULL);
	assert_true(growth_host(a, HOST_CPU_USER) < 0 && disk_of(a) < 0 && growth_busy(a) < 0);
	growth_follow(b, a);
	assert_true(is_about(growth_host(b, HOST_CPU_USER), 20) && is_about(disk_of(b), 20));
	assert_true(is_about(growth_busy(b), 0.25) && is_about(growth_state(b, HOST_CPU_USER), 0.25));
	assert_true(growth_host(b, HOST_PRESSURE_IO_SOME) < 0);
	/* The agent has nothing newer yet. */
	growth_follow(again, b);
	assert_true(is_about(growth_host(again, HOST_CPU_USER), 20));
	/* It has begun anew; it was not asked for long. */
	growth_follow(less, again);
	growth_follow(late, less);
	assert_true(growth_host(less, HOST_CPU_USER) < 0 && growth_host(late, HOST_CPU_USER) < 0);
	sample_free(a);
	sample_free(b);
	sample_free(again);
	sample_free(less);
	sample_free(late);
}

/* A page of five seconds ago, then one of now: between, the rate is that of the pages before. */
static void tokens_from_page_to_page(_unused_ void **state)
{
	static const struct {
		int read_before_s;
		double tokens, wanted;
	} steps[] = { { 0, 100, -1 },  { 1, 100, -1 },  { 2, 100, -1 },
		      { 0, 400, 100 }, { 1, 400, 100 }, { 0, 500, 50 } };
	struct sample *before = NULL;

	for (int i = 0; i < (int)ARRAY_SIZE(steps); i++) {
		struct sample *sample = sample_at(i, i);

		add_server(sample, steps[i].read_before_s, steps[i].tokens);
		growth_follow(sample, before);
		assert_true(is_about(tokens_of(sample), steps[i].wanted));
		sample_free(before);
		before = sample;
	}
	before->snapshot->servers.list[0].id.pid = 8;
	assert_true(tokens_of(before) < 0);
	sample_free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_grow),
		cmocka_unit_test(tokens_from_page_to_page),
	};

	return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
