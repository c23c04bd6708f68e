// SPDX-License-Identifier: Apache-2.0
#include "view/json/server.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "view/snapshot/values.h"

#define STRIP "inference_"

static json_t *json_server(struct json_maker *j, const struct inference_server *server)
{
	const struct json_rows rows = {
		.rows = server_metrics, .n = SERVER_METRICS, .v = server->v, .p = server->p, .strip = STRIP
	};
	json_t *object = json_object();
	double age = (double)(j->s->boot_ns - server->read_boot_ns) / NSEC_PER_SEC;

	json_put(j, object, "server", json_string(server_kinds[server->kind].name));
	json_put(j, object, "pid", json_integer(server->id.pid));
	json_put(j, object, "uid", json_unsigned_or_null(server->uid));
	json_put(j, object, "port", json_positive_or_null(server->port));
	json_put(j, object, "state", json_string(server_states[server->state].name));
	json_put(j, object, "error", json_text_or_null(server->error));
	json_put(j, object, "age_seconds", server->read_boot_ns ? json_number(MAX(age, 0.0)) : json_null());
	json_add_rows(j, object, &rows);
	return object;
}

json_t *json_inference(struct json_maker *j)
{
	const struct servers *servers = &j->s->servers;
	json_t *object, *array;

	if (!servers->read)
		return json_null();
	object = json_object();
	array = json_array();
	json_put(j, object, "left_out", json_integer((json_int_t)servers->left_out));
	for (uint32_t i = 0; i < servers->n; i++)
		json_push(j, array, json_server(j, &servers->list[i]));
	json_put(j, object, "servers", array);
	return object;
}

/* What another agent's version has, and this one does not know, is of no kind: false. */
static bool read_words(const json_t *object, struct inference_server *server)
{
	char kind[32], state[32];

	READ_TEXT(kind, object, "server");
	READ_TEXT(state, object, "state");
	while (server->kind < SERVER_KINDS && !STRV_EQ(kind, server_kinds[server->kind].name))
		server->kind++;
	while (server->state < SERVER_STATES && !STRV_EQ(state, server_states[server->state].name))
		server->state++;
	return server->kind < SERVER_KINDS && server->state < SERVER_STATES;
}

static bool read_server(const json_t *object, int64_t boot_ns, struct inference_server *ret_server)
{
	struct inference_server server = { .id.pid = read_u32(object, "pid", 0),
					   .uid = read_u32(object, "uid", UINT32_MAX),
					   .port = read_u32(object, "port", 0) };
	double age = read_double(object, "age_seconds", -1);

	if (!read_words(object, &server))
		return false;
	if (age >= 0 && age * NSEC_PER_SEC < (double)boot_ns)
		server.read_boot_ns = boot_ns - (int64_t)(age * NSEC_PER_SEC);
	READ_TEXT(server.error, object, "error");
	read_rows(object, server_metrics, SERVER_METRICS, STRIP, NULL, server.v, server.p);
	*ret_server = server;
	return true;
}

void json_read_inference(const json_t *object, struct snapshot *snapshot)
{
	struct servers *servers = &snapshot->servers;
	json_t *server;
	size_t i;

	memset(servers, 0, sizeof(*servers));
	servers->read = json_is_object(object);
	servers->left_out = read_count(object, "left_out");
	json_array_foreach(json_object_get(object, "servers"), i, server)
		if (servers->n < SERVERS_MAX &&
		    read_server(server, snapshot->boot_ns, &servers->list[servers->n]))
			servers->n++;
}
