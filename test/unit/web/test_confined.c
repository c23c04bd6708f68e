// SPDX-License-Identifier: Apache-2.0
/*
 * A forked process confines itself as the one that listens and tries what it could want when it is taken
 * over.
 */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "serve/address.h"
#include "web/web.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static pid_t agent;
static char byte;
/* What it would have got from the agent, or could have inherited by mistake. */
static int a_listener, a_socket, a_file, a_folder, a_page;

/* Each is true if it was not refused. */
static bool opens_a_file(void)
{
	return open("/etc/hostname", O_RDONLY) >= 0 || openat(a_folder, "hostname", O_RDONLY) >= 0 ||
	       syscall(SYS_openat2, a_folder, "hostname", &(uint64_t[3]){ 0 }, 24) >= 0;
}

static bool creates_a_file(void)
{
	return open("/tmp/gpusonde-taken-over", O_WRONLY | O_CREAT, 0600) >= 0 ||
	       mkdir("/tmp/gpusonde-taken-over", 0700) == 0 || memfd_create("x", 0) >= 0;
}

static bool writes_to_a_file(void)
{
	signal(SIGXFSZ, SIG_IGN);
	return write(a_file, "x", 1) == 1 || ftruncate(a_file, 0) == 0 || fchmod(a_file, 0777) == 0;
}

static bool lists_a_folder(void)
{
	char entries[256];

	return syscall(SYS_getdents64, a_folder, entries, sizeof(entries)) >= 0;
}

static bool connects(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) },
				  .sin_port = htons(9) };

	return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 ||
	       socket(AF_NETLINK, SOCK_RAW, 0) >= 0 ||
	       connect(a_socket, (struct sockaddr *)&in, sizeof(in)) == 0 || errno != EPERM;
}

static bool listens_elsewhere(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	return bind(a_socket, (struct sockaddr *)&in, sizeof(in)) == 0 || listen(a_socket, 1) == 0;
}

static bool signals_the_agent(void)
{
	return kill(agent, 0) == 0 || syscall(SYS_tgkill, agent, agent, 0) == 0 ||
	       syscall(SYS_tkill, agent, 0) == 0 || fcntl(a_socket, F_SETOWN, agent) == 0;
}

static bool traces_the_agent(void)
{
	return ptrace(PTRACE_ATTACH, agent, 0, 0) == 0 || ptrace(PTRACE_SEIZE, agent, 0, 0) == 0;
}

static bool reads_the_agents_memory(void)
{
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	return process_vm_readv(agent, &here, 1, &there, 1, 0) == 1 ||
	       process_vm_writev(agent, &here, 1, &there, 1, 0) == 1;
}

static bool takes_the_agents_descriptors(void)
{
	return syscall(SYS_pidfd_open, agent, 0) >= 0;
}

static bool executes(void)
{
	execl("/bin/false", "false", (char *)NULL);
	return errno != EPERM;
}

static bool starts_a_process(void)
{
	return fork() >= 0 || syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0;
}

static bool makes_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0 ||
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static bool becomes_root(void)
{
	return setuid(0) == 0 || setresuid(0, 0, 0) == 0 || geteuid() == 0;
}

static bool raises_its_limits(void)
{
	return setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1, 1 }) == 0 ||
	       prlimit(agent, RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }, NULL) == 0;
}

static bool makes_a_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0 || syscall(SYS_bpf, 0, NULL, 0) >= 0 ||
	       syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) >= 0 ||
	       syscall(SYS_io_uring_setup, 1, NULL) >= 0;
}

static bool writes_to_a_page_to_read(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a_page, 0) != MAP_FAILED;
}

static void *a_thread(void *userdata)
{
	return userdata;
}

/* What it has to be able to do, or all of the above would say nothing. */
static bool serves(void)
{
	pthread_t thread;
	int fd = accept4(a_listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd >= 0 && send(fd, "x", 1, 0) == 1 && pthread_create(&thread, NULL, a_thread, NULL) == 0 &&
	       pthread_join(thread, NULL) == 0;
}

static bool does(bool (*attempt)(void))
{
	pid_t owner = getpid(), pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (confine(&web_confinement, owner) < 0)
			_exit(99);
		_exit(attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status);
}

static int open_things(_unused_ void **state)
{
	char path[] = "/tmp/gpusonde-test-confined-XXXXXX";
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fds[ADDRESS_MAX], client;
	unsigned n;

	agent = getpid();
	if (listen_tcp_text("127.0.0.1:0", fds, &n) < 0)
		return -1;
	a_listener = fds[0];
	client = socket(AF_INET, SOCK_STREAM, 0);
	in.sin_port = htons((uint16_t)listen_port(a_listener));
	if (connect(client, (struct sockaddr *)&in, sizeof(in)) < 0)
		return -1;
	a_socket = socket(AF_INET, SOCK_STREAM, 0);
	a_file = mkstemp(path);
	unlink(path);
	a_folder = open("/etc", O_RDONLY | O_DIRECTORY);
	a_page = memfd_create("page", MFD_ALLOW_SEALING);
	return ftruncate(a_page, 4096) < 0 || fcntl(a_page, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -1 : 0;
}

#define ATTEMPT(attempt_)                                                                   \
	static void never_##attempt_(_unused_ void **state)                                 \
	{                                                                                   \
		if (SANITIZED)                                                              \
			need_unmet("a build with sanitizers does not filter system calls"); \
		assert_false(does(attempt_));                                               \
	}

ATTEMPT(opens_a_file)
ATTEMPT(creates_a_file)
ATTEMPT(writes_to_a_file)
ATTEMPT(lists_a_folder)
ATTEMPT(connects)
ATTEMPT(listens_elsewhere)
ATTEMPT(signals_the_agent)
ATTEMPT(traces_the_agent)
ATTEMPT(reads_the_agents_memory)
ATTEMPT(takes_the_agents_descriptors)
ATTEMPT(executes)
ATTEMPT(starts_a_process)
ATTEMPT(makes_code)
ATTEMPT(becomes_root)
ATTEMPT(raises_its_limits)
ATTEMPT(makes_a_namespace)
ATTEMPT(writes_to_a_page_to_read)

static void serves_what_it_is_given(_unused_ void **state)
{
	assert_true(does(serves));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_what_it_is_given),
		cmocka_unit_test(never_opens_a_file),
		cmocka_unit_test(never_creates_a_file),
		cmocka_unit_test(never_writes_to_a_file),
		cmocka_unit_test(never_lists_a_folder),
		cmocka_unit_test(never_connects),
		cmocka_unit_test(never_listens_elsewhere),
		cmocka_unit_test(never_signals_the_agent),
		cmocka_unit_test(never_traces_the_agent),
		cmocka_unit_test(never_reads_the_agents_memory),
		cmocka_unit_test(never_takes_the_agents_descriptors),
		cmocka_unit_test(never_executes),
		cmocka_unit_test(never_starts_a_process),
		cmocka_unit_test(never_makes_code),
		cmocka_unit_test(never_becomes_root),
		cmocka_unit_test(never_raises_its_limits),
		cmocka_unit_test(never_makes_a_namespace),
		cmocka_unit_test(never_writes_to_a_page_to_read),
	};

	return cmocka_run_group_tests(tests, open_things, NULL);
}
