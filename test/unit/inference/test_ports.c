// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "inference/ports.h"

#define REST "00000000:00000000 00:00000000 00000000  1000        0 "
#define HEAD \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

static void listening_sockets_of_a_table(_unused_ void **state)
{
	static const char v4[] = HEAD "   0: 00000000:1F40 00000000:0000 0A " REST "4711 1 0 100 0\n"
				      "   1: 0100007F:1F41 0100007F:9999 01 " REST "4712 1 0 20 4\n"
				      "   2: 0200007F:1F42 00000000:0000 0A " REST "4713 1 0 100 0\n"
				      "   3: 0200007F:1F43 00000000:0000 0A\n   4: zz\n\n";
	static const char v6[] =
		HEAD "   0: 00000000000000000000000000000000:1F44 00000000000000000000000000000000:0000 0A "
		     "00000000:00000000 00:00000000 00000000     0        0 4714 1 0 100 0\n";
	static struct ports ports;
	static const uint8_t near[4] = { 127, 0, 0, 1 }, other[4] = { 127, 0, 0, 2 };

	ports.n = 0;
	ports_parse(&ports, false, v4, sizeof(v4) - 1);
	assert_int_equal(ports.n, 2);
	assert_int_equal(ports.list[0].port, 8000);
	assert_int_equal(ports.list[0].inode, 4711);
	/* Which listens everywhere is asked here. */
	assert_memory_equal(ports.list[0].address, near, 4);
	assert_memory_equal(ports.list[1].address, other, 4);
	ports_parse(&ports, true, v6, sizeof(v6) - 1);
	assert_int_equal(ports.n, 3);
	assert_true(ports.list[2].is_ipv6);
	assert_int_equal(ports.list[2].address[15], 1);
}

static void a_socket_of_ours(_unused_ void **state)
{
	const struct listening *own[PROCESS_PORTS_MAX];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	static struct ports ports;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint32_t n;

	assert_return_code(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_return_code(listen(fd, 1), 0);
	assert_return_code(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	assert_return_code(ports_read(&ports, "/proc/self"), 0);
	n = ports_of_process(&ports, "/proc", (uint32_t)getpid(), own);
	assert_int_equal(n, 1);
	assert_int_equal(own[0]->port, ntohs(address.sin_port));
	close(fd);
	assert_int_equal(ports_of_process(&ports, "/proc", (uint32_t)getpid(), own), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listening_sockets_of_a_table),
		cmocka_unit_test(a_socket_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
