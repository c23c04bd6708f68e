// SPDX-License-Identifier: Apache-2.0
/* Answers to messages of the protocol. */
#include "cmd/mcp/mcp.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config.h"

/* Up to STATELESS a connection begins with a handshake; from then on each request names its version. */
static const char *const versions[] = { "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
					"2026-07-28" };
enum { STATELESS = 4, VERSIONS = ARRAY_SIZE(versions) };
/* Messages of a list: their answers are in memory at the same time. */
enum { BATCH_MAX = 16 };

#define META "io.modelcontextprotocol/"
#define INSTRUCTIONS                                                                                 \
	"What the GPUs of this machine do, for whom, and why programs on them are slow. "            \
	"Everything is read only. null means unknown, not zero; \"simulated\": true means that the " \
	"GPUs do not exist; figures called estimated are."

/* A request that is being answered. */
struct request {
	const json_t *id, *params;
	bool stateless; /* it names its version */
};

typedef json_t *method_fn(const struct request *request, enum mcp_error *ret_error);

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "gpusonde", "title", "gpusonde", "version",
			 GPUSONDE_VERSION);
}

static json_t *capabilities(void)
{
	return json_pack("{s:{}}", "tools");
}

static json_t *version_list(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < VERSIONS; i++)
		json_array_append_new(list, json_string(versions[i]));
	return list;
}

/* The client's version, else the newest that has a handshake: the client decides whether it goes on. */
static json_t *initialize(const struct request *request, _unused_ enum mcp_error *ret_error)
{
	const char *wanted = json_string_value(json_object_get(request->params, "protocolVersion"));
	const char *version = versions[STATELESS - 1];

	for (unsigned i = 0; wanted && i < STATELESS; i++)
		if (STRV_EQ(versions[i], wanted))
			version = versions[i];
	return json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", version, "capabilities", capabilities(),
			 "serverInfo", server_info(), "instructions", INSTRUCTIONS);
}

/* Of this program nothing changes while it runs; private, since what it is allowed to read is its user's. */
static json_t *cacheable(json_t *result)
{
	json_object_set_new(result, "ttlMs", json_integer(3600000));
	json_object_set_new(result, "cacheScope", json_string("private"));
	return result;
}

static json_t *discover(_unused_ const struct request *request, _unused_ enum mcp_error *ret_error)
{
	return cacheable(json_pack("{s:o, s:o, s:s}", "supportedVersions", version_list(), "capabilities",
				   capabilities(), "instructions", INSTRUCTIONS));
}

static json_t *ping(_unused_ const struct request *request, _unused_ enum mcp_error *ret_error)
{
	return json_object();
}

static json_t *tools_list(const struct request *request, _unused_ enum mcp_error *ret_error)
{
	json_t *list = json_pack("{s:o}", "tools", mcp_tools());

	return request->stateless ? cacheable(list) : list;
}

static json_t *tools_call(const struct request *request, enum mcp_error *ret_error)
{
	const char *name = json_string_value(json_object_get(request->params, "name"));
	const json_t *arguments = json_object_get(request->params, "arguments");

	*ret_error = MCP_INVALID_PARAMS;
	if (!name || (arguments && !json_is_null(arguments) && !json_is_object(arguments)))
		return NULL;
	return mcp_tool_call(name, arguments);
}

static const struct {
	const char *name;
	method_fn *answer;
} methods[] = {
	{ "initialize", initialize }, { "server/discover", discover }, { "ping", ping },
	{ "tools/list", tools_list }, { "tools/call", tools_call },
};

json_t *mcp_error_answer(const json_t *id, enum mcp_error code, const char *text)
{
	/* Where none could be read there is none: the protocol's schema has no null, as JSON-RPC has. */
	return json_pack("{s:s, s:O*, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", (json_t *)id, "error", "code",
			 (int)code, "message", text);
}

static json_t *unsupported(const struct request *request, const char *version)
{
	json_t *answer = mcp_error_answer(request->id, MCP_UNSUPPORTED_VERSION,
					  "this version of the protocol is not supported");

	json_object_set_new(json_object_get(answer, "error"), "data",
			    json_pack("{s:o, s:s}", "supported", version_list(), "requested", version));
	return answer;
}

static json_t *finish(const struct request *request, json_t *result)
{
	if (request->stateless) {
		json_object_set_new(result, "resultType", json_string("complete"));
		json_object_set_new(result, "_meta", json_pack("{s:o}", META "serverInfo", server_info()));
	}
	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", request->id, "result", result);
}

static json_t *answer_request(struct request *request, const char *method)
{
	const json_t *meta = json_object_get(request->params, "_meta");
	const char *version = json_string_value(json_object_get(meta, META "protocolVersion"));
	enum mcp_error error = MCP_INTERNAL_ERROR;

	request->stateless = version;
	if (version && !STRV_EQ(version, versions[STATELESS]))
		return unsupported(request, version);
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (!STRV_EQ(methods[i].name, method))
			continue;
		json_t *result = methods[i].answer(request, &error);

		if (result)
			return finish(request, result);
		return mcp_error_answer(request->id, error,
					error == MCP_INVALID_PARAMS ?
						"no such tool, or its arguments are no object" :
						"out of memory");
	}
	return mcp_error_answer(request->id, MCP_NO_METHOD, "no such method");
}

#define NO_REQUEST "no request of JSON-RPC 2.0"

/* Version 2025-03-26 lets a client send several messages as a list. */
static json_t *answer_batch(const json_t *batch)
{
	json_t *answers;
	const json_t *message;
	size_t i;

	if (json_array_size(batch) == 0 || json_array_size(batch) > BATCH_MAX)
		return mcp_error_answer(NULL, MCP_INVALID_REQUEST, "a list has 1 to 16 messages");
	answers = json_array();
	json_array_foreach(batch, i, message) {
		json_t *answer = json_is_array(message) ?
					 mcp_error_answer(NULL, MCP_INVALID_REQUEST, NO_REQUEST) :
					 mcp_answer(message);

		if (answer)
			json_array_append_new(answers, answer);
	}
	if (json_array_size(answers) > 0)
		return answers;
	json_decref(answers);
	return NULL;
}

json_t *mcp_answer(const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *version = json_string_value(json_object_get(message, "jsonrpc"));
	struct request request = { .id = json_object_get(message, "id"),
				   .params = json_object_get(message, "params") };

	if (json_is_array(message))
		return answer_batch(message);
	if (!version || !STRV_EQ(version, "2.0") || !method ||
	    (request.id && !json_is_string(request.id) && !json_is_integer(request.id)))
		return mcp_error_answer(NULL, MCP_INVALID_REQUEST, NO_REQUEST);
	return request.id ? answer_request(&request, method) : NULL; /* nothing to do at a notification */
}
