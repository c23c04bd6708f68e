// SPDX-License-Identifier: Apache-2.0
/* Servers among processes of a made-up /proc, whose sockets are this process's. */
#include "test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "inference/find.h"

enum { SOCKETS = 2, FIRST_TICKS = 12345 };

static char root[64];
static struct {
	int fd;
	uint16_t port;
	unsigned long inode;
} sockets[SOCKETS];
static struct find_answer answer;

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gpusonde-servers-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (unsigned i = 0; i < SOCKETS; i++) {
		struct sockaddr_in address = { .sin_family = AF_INET,
					       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t n = sizeof(address);
		struct stat st;

		sockets[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (bind(sockets[i].fd, (struct sockaddr *)&address, n) < 0 || listen(sockets[i].fd, 1) < 0 ||
		    getsockname(sockets[i].fd, (struct sockaddr *)&address, &n) < 0 ||
		    fstat(sockets[i].fd, &st) < 0)
			return -1;
		sockets[i].port = ntohs(address.sin_port);
		sockets[i].inode = st.st_ino;
	}
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	for (unsigned i = 0; i < SOCKETS; i++)
		close(sockets[i].fd);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put(uint32_t pid, const char *name, const void *text, size_t n)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, n, file), n);
	fclose(file);
}

static void put_link(uint32_t pid, const char *name, const char *to)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, name);
	assert_int_equal(symlink(to, path), 0);
}

/* A process of this network namespace, or of another one; @arguments has a NUL for each space. */
static void put_process(uint32_t pid, uint32_t parent, const char *comm, const char *arguments,
			bool elsewhere)
{
	static const char *const folders[] = { "", "fd", "ns", "net" };
	char text[256], here[64] = "";
	size_t n;

	for (unsigned i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(text, sizeof(text), "%s/%u/%s", root, pid, folders[i]);
		assert_int_equal(mkdir(text, 0700), 0);
	}
	snprintf(text, sizeof(text), "%u (%s) S %u 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0 0\n", pid, comm,
		 parent, FIRST_TICKS + pid);
	put(pid, "stat", text, strlen(text));
	n = strlen(arguments) + 1;
	memcpy(text, arguments, n);
	for (char *c = text; *c; c++)
		*c = *c == ' ' ? '\0' : *c;
	put(pid, "cmdline", text, n);
	assert_true(readlink("/proc/self/ns/net", here, sizeof(here) - 1) > 0);
	put_link(pid, "ns/net", elsewhere ? "net:[1]" : here);
}

static void give_socket(uint32_t pid, unsigned i)
{
	char name[32], to[64];

	snprintf(name, sizeof(name), "fd/%u", i);
	snprintf(to, sizeof(to), "socket:[%lu]", sockets[i].inode);
	put_link(pid, name, to);
}

static const struct found_server *only(bool arguments)
{
	assert_int_equal(servers_find(root, arguments, &answer), 0);
	assert_int_equal(answer.n, 1);
	assert_int_equal(answer.left_out, 0);
	return &answer.list[0];
}

static void test_the_port_that_the_command_line_says(_unused_ void **state)
{
	const struct found_server *server;
	char arguments[64];

	snprintf(arguments, sizeof(arguments), "vllm serve --port %u", sockets[1].port);
	put_process(100, 1, "vllm", arguments, false);
	give_socket(100, 0);
	give_socket(100, 1);
	server = only(true);
	assert_int_equal(server->kind, SERVER_VLLM);
	assert_int_equal(server->state, SERVER_STATE_NEW);
	assert_int_equal(server->port, sockets[1].port);
	assert_int_equal(server->id.pid, 100);
	assert_int_equal(server->id.start_ticks, FIRST_TICKS + 100);
	/* Without it there are two, of which none is known to be the page's. */
	server = only(false);
	assert_int_equal(server->state, SERVER_STATE_NO_PORT);
	assert_int_equal(server->port, 0);
}

/* What is said is believed, or nothing: another port is another's page. */
static void test_a_port_where_nobody_listens(_unused_ void **state)
{
	put_process(100, 1, "vllm", "vllm serve --port 9", false);
	give_socket(100, 0);
	assert_int_equal(only(true)->state, SERVER_STATE_NO_PORT);
}

static void test_its_only_port(_unused_ void **state)
{
	put_process(100, 1, "llama-server", "llama-server", false);
	give_socket(100, 0);
	assert_int_equal(only(true)->port, sockets[0].port);
	assert_int_equal(only(false)->port, sockets[0].port);
}

static void test_one_that_listens_nowhere_is_none(_unused_ void **state)
{
	put_process(100, 1, "vllm", "vllm bench", false);
	put_process(101, 1, "nginx", "nginx", false);
	give_socket(101, 0);
	assert_int_equal(servers_find(root, true, &answer), 0);
	assert_int_equal(answer.n, 0);
}

/* A server that starts others of its name is one; others that it starts are its members, too. */
static void test_who_comes_from_it(_unused_ void **state)
{
	const struct found_server *server;

	put_process(100, 1, "vllm", "vllm serve", false);
	put_process(101, 100, "vllm", "vllm worker", false);
	put_process(102, 101, "python3", "python3 -c x", false);
	put_process(103, 1, "python3", "python3 -c x", false);
	give_socket(101, 0);
	server = only(true);
	assert_int_equal(server->id.pid, 100);
	assert_int_equal(server->members_n, 3);
	assert_int_equal(server->members[2].pid, 102);
}

/* Its port is said, and it is not asked: an address of there may be another's here. */
static void test_another_network_namespace(_unused_ void **state)
{
	char table[256];
	const struct found_server *server;

	put_process(100, 1, "vllm", "vllm serve --port 8000", true);
	snprintf(table, sizeof(table),
		 "  sl  local_address rem_address\n   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 "
		 "00:00000000 00000000  1000        0 %lu 1 0 100 0\n",
		 sockets[0].inode);
	put(100, "net/tcp", table, strlen(table));
	give_socket(100, 0);
	server = only(true);
	assert_int_equal(server->state, SERVER_STATE_ELSEWHERE);
	assert_int_equal(server->port, 8000);
}

static void test_one_without_a_page(_unused_ void **state)
{
	put_process(100, 1, "ollama", "ollama serve", false);
	give_socket(100, 0);
	assert_int_equal(only(true)->state, SERVER_STATE_NO_PAGE);
}

static void test_more_than_there_is_room_for(_unused_ void **state)
{
	for (uint32_t i = 0; i < SERVERS_MAX + 3; i++) {
		put_process(100 + i, 1, "llama-server", "llama-server", false);
		give_socket(100 + i, 0);
	}
	assert_int_equal(servers_find(root, true, &answer), 0);
	assert_int_equal(answer.n, SERVERS_MAX);
	assert_int_equal(answer.left_out, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_port_that_the_command_line_says, begin, end),
		cmocka_unit_test_setup_teardown(test_a_port_where_nobody_listens, begin, end),
		cmocka_unit_test_setup_teardown(test_its_only_port, begin, end),
		cmocka_unit_test_setup_teardown(test_one_that_listens_nowhere_is_none, begin, end),
		cmocka_unit_test_setup_teardown(test_who_comes_from_it, begin, end),
		cmocka_unit_test_setup_teardown(test_another_network_namespace, begin, end),
		cmocka_unit_test_setup_teardown(test_one_without_a_page, begin, end),
		cmocka_unit_test_setup_teardown(test_more_than_there_is_room_for, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
