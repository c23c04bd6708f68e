// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "inference/names.h"

static enum server_kind of_comm(const char *name)
{
	const struct cursor comm = cursor_over(name, strlen(name));

	return server_of_comm(&comm);
}

static void names_of_processes(_unused_ void **state)
{
	static const struct {
		const char *comm;
		enum server_kind kind;
	} rows[] = {
		{ "vllm", SERVER_VLLM },
		{ "VLLM::EngineCor", SERVER_VLLM },
		{ "sglang::schedul", SERVER_SGLANG },
		{ "text-generation", SERVER_TGI },
		{ "llama-server", SERVER_LLAMA_CPP },
		{ "tritonserver", SERVER_TRITON },
		{ "ollama", SERVER_OLLAMA },
		{ "vllm2", SERVER_KINDS },
		{ "xvllm", SERVER_KINDS },
		{ "llama-serve", SERVER_KINDS },
		{ "text-generatio", SERVER_KINDS },
		{ "python3", SERVER_KINDS },
		{ "", SERVER_KINDS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (of_comm(rows[i].comm) != rows[i].kind)
			fail_msg("%s: %u", rows[i].comm, of_comm(rows[i].comm));
}

#define ARGUMENTS(...) __VA_ARGS__ "\0", sizeof(__VA_ARGS__ "\0") - 1

static void command_lines(_unused_ void **state)
{
	static const struct {
		const char *arguments;
		size_t n;
		enum server_kind kind;
		uint16_t port;
	} rows[] = {
		{ ARGUMENTS("/usr/bin/python3\0/opt/bin/vllm\0serve\0m\0--port\0"
			    "8123"),
		  SERVER_VLLM, 8123 },
		{ ARGUMENTS("python3.11\0-u\0-m\0vllm.entrypoints.openai.api_server\0--port=8124"),
		  SERVER_VLLM, 8124 },
		{ ARGUMENTS("python\0-m\0sglang.launch_server\0--port\0"
			    "30001"),
		  SERVER_SGLANG, 30001 },
		{ ARGUMENTS("/opt/tritonserver/bin/tritonserver\0--metrics-port=9002\0--port=1"),
		  SERVER_TRITON, 9002 },
		{ ARGUMENTS("llama-server\0--port\0"
			    "99999"),
		  SERVER_LLAMA_CPP, 0 },
		{ ARGUMENTS("llama-server\0--port"), SERVER_LLAMA_CPP, 0 },
		{ ARGUMENTS("llama-server\0--portable=1"), SERVER_LLAMA_CPP, 0 },
		{ ARGUMENTS("ollama\0serve\0--port=1"), SERVER_OLLAMA, 0 },
		{ ARGUMENTS("python3\0train.py\0vllm"), SERVER_KINDS, 0 },
		{ ARGUMENTS("vim\0vllm.py"), SERVER_KINDS, 0 },
		{ ARGUMENTS("python3\0-m"), SERVER_KINDS, 0 },
		{ ARGUMENTS("python3"), SERVER_KINDS, 0 },
		/* Cut off: the last one has no end. */
		{ "python3\0-m\0vllm", sizeof("python3\0-m\0vllm") - 1, SERVER_KINDS, 0 },
		{ "vllm", 4, SERVER_KINDS, 0 },
		{ "", 0, SERVER_KINDS, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum server_kind kind = server_of_arguments(rows[i].arguments, rows[i].n);

		if (kind != rows[i].kind)
			fail_msg("row %zu: %u", i, kind);
		if (kind != SERVER_KINDS)
			assert_int_equal(port_of_arguments(kind, rows[i].arguments, rows[i].n), rows[i].port);
	}
}

static void what_hides_a_program(_unused_ void **state)
{
	const struct cursor torch = cursor_over("pt_main_thread", 14), shell = cursor_over("bash", 4);

	assert_true(comm_hides_program(&torch));
	assert_false(comm_hides_program(&shell));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_processes),
		cmocka_unit_test(command_lines),
		cmocka_unit_test(what_hides_a_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
