// SPDX-License-Identifier: Apache-2.0
#include "nvml/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "config.h"
#include "helper/starter.h"

#define HELPER "gpusonde-nvml"

/* Descriptors in the child, and the numbers that ours are moved to first, to avoid collisions. */
enum { CHILD_MEMORY = 3, CHILD_SOCKET = 4, CHILD_FDS = 5, FD_ASIDE = 10 };

void spawn_find_helper(const char *configured, char ret_path[PATH_MAX])
{
	/* As built, and as installed, which works below any DESTDIR. */
	static const char *const beside[] = { "/" HELPER, "/../libexec/gpusonde/" HELPER };
	char folder[PATH_MAX];

	if (configured) {
		snprintf(ret_path, PATH_MAX, "%s", configured);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(beside) && program_folder(folder) == 0; i++)
		if (snprintf(ret_path, PATH_MAX, "%s%s", folder, beside[i]) < PATH_MAX &&
		    access(ret_path, X_OK) == 0)
			return;
	snprintf(ret_path, PATH_MAX, "%s", GPUSONDE_LIBEXECDIR "/" HELPER);
}

/* Sealed against truncation: reading a mapping beyond the end of its file raises SIGBUS. */
static int make_memory(void)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-nvml", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int aside;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct nvml_shared)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	aside = fcntl(fd, F_DUPFD_CLOEXEC, FD_ASIDE);
	return aside < 0 ? -errno : aside;
}

static struct nvml_shared *map_memory(int fd, const struct persistent_state *states, uint32_t attach)
{
	struct nvml_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED)
		return NULL;
	shared->magic = NVML_SHARED_MAGIC;
	shared->version = NVML_SHARED_VERSION;
	shared->size = sizeof(*shared);
	shared->attach = attach;
	/* Copies only those in use; other pages need not be allocated. */
	for (size_t i = 0; states && i < READING_ENTITIES_MAX && states[i].uuid[0]; i++)
		shared->states[i] = states[i];
	return shared;
}

static int make_sockets(int *ret_ours, int *ret_theirs)
{
	int pair[2], aside, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	aside = fcntl(pair[1], F_DUPFD_CLOEXEC, FD_ASIDE);
	r = aside < 0 ? -errno : fd_nonblock(pair[0]);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		if (aside >= 0)
			close(aside);
		return r;
	}
	*ret_ours = pair[0];
	*ret_theirs = aside;
	return 0;
}

/* The descriptors that the thread which starts it is sent. */
enum { SEND_ERRORS, SEND_MEMORY, SEND_SOCKET, SEND_N };

/* What the library prints must not get into the agent's output, so its stdout is the agent's stderr. */
static int add_actions(posix_spawn_file_actions_t *actions, const int fds[SEND_N])
{
	int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_ERRORS], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_ERRORS], STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_MEMORY], CHILD_MEMORY);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, fds[SEND_SOCKET], CHILD_SOCKET);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, CHILD_FDS);
	return -r;
}

/* The event loop blocks signals, and its handlers do not exist in the child. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

struct start {
	const char *helper, *library;
	pid_t pid;
};

static int start_child(const int fds[], void *userdata)
{
	struct start *start = userdata;
	char us[16], memory_text[16], socket_text[16];
	char name[] = HELPER, none[] = "";
	char *argv[] = { name, us, memory_text, socket_text, start->library ? (char *)start->library : none,
			 NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	snprintf(us, sizeof(us), "%d", getpid());
	snprintf(memory_text, sizeof(memory_text), "%d", CHILD_MEMORY);
	snprintf(socket_text, sizeof(socket_text), "%d", CHILD_SOCKET);
	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = add_actions(&actions, fds);
		if (r == 0)
			r = set_signals(&attributes);
		if (r == 0)
			r = -posix_spawn(&start->pid, start->helper, &actions, &attributes, argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The PID cannot be reused before we wait for it, so this is the child that we started. */
static int watch(pid_t pid)
{
	int fd = pidfd_open(pid, 0), r = -errno;

	if (fd >= 0)
		return fd;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

int spawn_child(const char *helper, const char *library, const struct persistent_state *states,
		uint32_t attach, uint32_t left_out, struct spawned *ret_spawned)
{
	_cleanup_close_ int memory = -1, ours = -1, theirs = -1;
	struct nvml_shared *shared;
	struct start begun = { .helper = helper, .library = library };
	int r, pidfd;

	memory = make_memory();
	if (memory < 0)
		return memory;
	r = make_sockets(&ours, &theirs);
	if (r < 0)
		return r;
	shared = map_memory(memory, states, attach);
	if (!shared)
		return -ENOMEM;
	shared->left_out = left_out;
	r = starter_run(start_child, &begun, (const int[SEND_N]){ STDERR_FILENO, memory, theirs }, SEND_N);
	pidfd = r < 0 ? r : watch(begun.pid);
	if (pidfd < 0) {
		munmap(shared, sizeof(*shared));
		return pidfd;
	}
	*ret_spawned = (struct spawned){
		.pid = begun.pid, .pidfd = pidfd, .socket = TAKE_FD(ours), .shared = shared
	};
	return 0;
}
