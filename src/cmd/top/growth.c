// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/growth.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Documents further apart say nothing of now. */
#define APART_NS (60 * NSEC_PER_SEC)

struct growth {
	double seconds; /* from then to the sample's document */
	struct host host;
	struct servers servers;
	/* Of each, from the page that these sums are of to the newest one; 0: unknown. */
	double server_seconds[SERVERS_MAX];
};

static bool is_same_server(const struct inference_server *a, const struct inference_server *b)
{
	return a->kind == b->kind && a->id.pid == b->id.pid;
}

static uint32_t find_server(const struct servers *servers, const struct inference_server *server)
{
	uint32_t i = 0;

	while (i < servers->n && !is_same_server(&servers->list[i], server))
		i++;
	return i;
}

/* When its page was read, in time that goes on from document to document. */
static int64_t page_ns(const struct sample *sample, const struct inference_server *server)
{
	return sample->snapshot->real_ns - (sample->snapshot->boot_ns - server->read_boot_ns);
}

/* Of a server whose page is the same as before, what stood before that one. */
static void follow_server(struct growth *now, const struct sample *sample, const struct sample *previous,
			  uint32_t i)
{
	const struct inference_server *server = &sample->snapshot->servers.list[i];
	const struct servers *then = &previous->snapshot->servers;
	uint32_t at = find_server(then, server);
	int64_t apart_ns;

	now->servers.list[i] = *server;
	if (at == then->n || !server->read_boot_ns || !then->list[at].read_boot_ns)
		return;
	apart_ns = page_ns(sample, server) - page_ns(previous, &then->list[at]);
	/* Ages in documents are rounded. */
	if (apart_ns > NSEC_PER_SEC / 2) {
		now->servers.list[i] = then->list[at];
		now->server_seconds[i] = (double)apart_ns * 1e-9;
	} else if (previous->before && at < previous->before->servers.n) {
		now->servers.list[i] = previous->before->servers.list[at];
		now->server_seconds[i] = previous->before->server_seconds[at];
	}
}

void growth_follow(struct sample *sample, const struct sample *previous)
{
	int64_t apart_ns;
	struct growth *now;

	if (!sample->snapshot || !previous || !previous->snapshot)
		return;
	apart_ns = sample->snapshot->real_ns - previous->snapshot->real_ns;
	now = apart_ns >= 0 && apart_ns <= APART_NS ? malloc(sizeof(*now)) : NULL;
	if (!now)
		return;
	if (apart_ns == 0 && previous->before) {
		*now = *previous->before; /* the same document, once more */
		sample->before = now;
		return;
	}
	memset(now, 0, sizeof(*now));
	now->seconds = (double)apart_ns * 1e-9;
	now->host = previous->snapshot->host;
	now->servers.n = sample->snapshot->servers.n;
	for (uint32_t i = 0; i < now->servers.n; i++)
		follow_server(now, sample, previous, i);
	sample->before = now;
}

void growth_free(struct growth *before)
{
	free(before);
}

/* A sum that has become less has begun anew. */
static double by_second(double now, uint8_t now_p, double before, uint8_t before_p, double seconds)
{
	if (!presence_is(now_p) || !presence_is(before_p) || seconds <= 0 || now < before)
		return -1;
	return (now - before) / seconds;
}

double growth_host(const struct sample *sample, enum host_metric metric)
{
	const struct growth *before = sample->before;
	const struct host *host = &sample->snapshot->host;

	return before ? by_second(host->v[metric], host->p[metric], before->host.v[metric],
				  before->host.p[metric], before->seconds) :
			-1;
}

double growth_device(const struct sample *sample, enum host_kind kind, const struct host_device *device,
		     unsigned row)
{
	const struct growth *before = sample->before;

	for (uint32_t i = 0; before && i < before->host.devices[kind].n; i++) {
		const struct host_device *then = &before->host.devices[kind].list[i];

		if (STRV_EQ(then->name, device->name))
			return by_second(device->v[row], device->p[row], then->v[row], then->p[row],
					 before->seconds);
	}
	return -1;
}

double growth_server(const struct sample *sample, const struct inference_server *server,
		     enum server_metric metric)
{
	const struct growth *before = sample->before;
	uint32_t at = before ? find_server(&before->servers, server) : 0;

	if (!before || at == before->servers.n)
		return -1;
	return by_second(server->v[metric], server->p[metric], before->servers.list[at].v[metric],
			 before->servers.list[at].p[metric], before->server_seconds[at]);
}

/* Of all states; 0: they are not known. */
static double all_states(const struct sample *sample)
{
	double sum = 0;

	for (unsigned m = HOST_CPU_USER; m <= HOST_CPU_STEAL; m++)
		sum += MAX(growth_host(sample, (enum host_metric)m), 0.0);
	return sum;
}

double growth_state(const struct sample *sample, enum host_metric state)
{
	double part = growth_host(sample, state), all = all_states(sample);

	return part >= 0 && all > 0 ? part / all : -1;
}

double growth_busy(const struct sample *sample)
{
	double idle = growth_state(sample, HOST_CPU_IDLE);

	return idle >= 0 ? 1 - idle : -1;
}
