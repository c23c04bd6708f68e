// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde mcp: the Model Context Protocol over standard input and output, with tools that only read.
 * https://modelcontextprotocol.io/specification: versions 2024-11-05 to 2025-11-25, whose connections begin
 * with a handshake, and 2026-07-28, whose requests each name their version.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/strbuf.h"

/* Of JSON-RPC 2.0, but for the last, which is MCP's. */
enum mcp_error {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_UNSUPPORTED_VERSION = -32022,
};

/* The answer to one message; NULL: it needs none, or there is no memory. */
json_t *mcp_answer(const json_t *message);
/* The answer to what is no message, or cannot be answered. @id: the request's; NULL: it could not be read. */
json_t *mcp_error_answer(const json_t *id, enum mcp_error code, const char *text);

/* The list for tools/list. NULL: no memory. */
json_t *mcp_tools(void);
/*
 * Runs a tool. The result for tools/call: what the command printed, or why it failed. NULL: there is no such
 * tool, or no memory.
 */
json_t *mcp_tool_call(const char *name, const json_t *arguments);
