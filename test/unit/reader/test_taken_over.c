// SPDX-License-Identifier: Apache-2.0
/*
 * Forked processes confine themselves as each of the programs that touch what clients and users choose, and
 * try what they could want when they are taken over: SECURITY.md's table, attempt by attempt.
 */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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
#include "dcgm/serve.h"
#include "kubelet/serve.h"
#include "owners/serve.h"
#include "reader/roles.h"
#include "serve/address.h"
#include "web/web.h"

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

/* CAP_DAC_READ_SEARCH, which looking into users' folders takes, is not for these files alone. */
static bool opens_a_file_of_root(void)
{
	return open("/etc/shadow", O_RDONLY) >= 0;
}

/* Which takes a descriptor that is open for writing. */
static bool writes_to_a_mapped_file(void)
{
	return mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, a_file, 0) != MAP_FAILED;
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

	return process_vm_readv(agent, &here, 1, &there, 1, 0) == 1;
}

static bool writes_the_agents_memory(void)
{
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	return process_vm_writev(agent, &here, 1, &there, 1, 0) == 1 || open("/proc/self/mem", O_RDWR) >= 0;
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

/* ---- who may what ---- */

enum { WEB = 1, FILES = 2, SITES = 4, SYMBOLS = 8, OWNERS = 16, KUBELET = 32, DCGM = 64, NCCL = 128 };

static const struct {
	unsigned process;
	const char *role; /* of gpusonde-reader */
	const struct confinement *confinement; /* of another program */
} processes[] = {
	{ WEB, NULL, &web_confinement },
	{ FILES, "files", NULL },
	{ SITES, "sites", NULL },
	{ SYMBOLS, "symbols", NULL },
	{ NCCL, "nccl", NULL },
	{ NCCL, "cupti", NULL },
	{ OWNERS, NULL, &owners_confinement },
	{ KUBELET, NULL, &kubelet_confinement },
	{ DCGM, NULL, &dcgm_confinement },
};

static bool does(const struct confinement *confinement, bool (*attempt)(void))
{
	pid_t owner = getpid(), pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (confine(confinement, owner) < 0)
			_exit(99);
		_exit(attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status);
}

/* The processes that it was not refused to. */
static unsigned who(bool (*attempt)(void))
{
	unsigned found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		if (does(processes[i].role ? &reader_role_find(processes[i].role)->confinement :
					     processes[i].confinement,
			 attempt))
			found |= processes[i].process;
	return found;
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

static void needs_confinement(void)
{
	if (SANITIZED)
		need_unmet("a build with sanitizers does not filter system calls");
	/* Root of a container without these stays root, and reads what the filter lets it. */
	if (geteuid() == 0 &&
	    (prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) != 1 || prctl(PR_CAPBSET_READ, CAP_SETUID) != 1 ||
	     prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH) != 1))
		need_unmet("root without capabilities");
}

/* Attempt, and those that may. */
#define ATTEMPTS(X)                                                                                   \
	X(opens_a_file, FILES | SYMBOLS | OWNERS | KUBELET | DCGM)                                    \
	X(opens_a_file_of_root, geteuid() == 0 ? FILES | SYMBOLS | OWNERS | KUBELET : 0)              \
	X(creates_a_file, 0)                                                                          \
	X(writes_to_a_file, 0)                                                                        \
	X(writes_to_a_mapped_file, WEB | SYMBOLS)                                                     \
	X(lists_a_folder, FILES | SYMBOLS | OWNERS | KUBELET | DCGM)                                  \
	X(connects, DCGM)                                                                             \
	X(listens_elsewhere, 0)                                                                       \
	X(signals_the_agent, 0)                                                                       \
	X(traces_the_agent, 0)                                                                        \
	X(reads_the_agents_memory, geteuid() == 0 ? SYMBOLS : who(reads_the_agents_memory) & SYMBOLS) \
	X(writes_the_agents_memory, 0)                                                                \
	X(takes_the_agents_descriptors, 0)                                                            \
	X(executes, 0)                                                                                \
	X(starts_a_process, 0)                                                                        \
	X(makes_code, 0)                                                                              \
	X(becomes_root, 0)                                                                            \
	X(raises_its_limits, 0)                                                                       \
	X(makes_a_namespace, 0)                                                                       \
	X(writes_to_a_page_to_read, 0)

#define ATTEMPT(attempt_, allowed_)                        \
	static void test_##attempt_(_unused_ void **state) \
	{                                                  \
		needs_confinement();                       \
		assert_int_equal(who(attempt_), allowed_); \
	}
ATTEMPTS(ATTEMPT)

static void serves_what_it_is_given(_unused_ void **state)
{
	assert_true(does(&web_confinement, serves));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(serves_what_it_is_given),
#define TEST(attempt_, allowed_) cmocka_unit_test(test_##attempt_),
					    ATTEMPTS(TEST) };

	return cmocka_run_group_tests(tests, open_things, NULL);
}
