// SPDX-License-Identifier: Apache-2.0
/* The holder's side of cmd/trace/exec_gate.h: the filter, the reports and their files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/text.h"
#include "cmd/trace/exec_gate_private.h"
#include "helper/message.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "add this machine's AUDIT_ARCH_ constant"
#endif

enum {
	INTERPRETERS_MAX = 5, /* as in the kernel */
	ANSWER_TIMEOUT_MS = 5000, /* longest time that a stopped gpusonde holds the command */
};

/* Loads the low half of a 64-bit argument: both machines are little-endian. */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define JUMP_BITS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, yes, no)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)

/* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV in linux/seccomp.h since 5.19. */
#define WAIT_KILLABLE (1UL << 5)

/*
 * @killable: after the holder has received a call's report, signals to the caller stay pending until the call
 * continues; else mmap and dlopen could fail with EINTR, which programs do not expect. Since Linux 5.19.
 */
static int set_filter(const struct sock_fprog *program, bool killable)
{
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | (killable ? WAIT_KILLABLE : 0);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * exit_group is not reported: a signal that arrives before the report has been received makes the call
 * return, and a program whose exit_group returns ends with SIGSEGV.
 */
static int try_filter(bool killable)
{
	struct sock_filter code[] = {
		LOAD(arch),
		JUMP_EQUAL(NATIVE_ARCH, 0, 9), /* another machine's programs are not traced */
		LOAD(nr),
		JUMP_EQUAL(SYS_execve, 6, 0),
		JUMP_EQUAL(SYS_execveat, 5, 0),
		JUMP_EQUAL(SYS_mmap, 0, 5),
		LOAD(args[2]),
		JUMP_BITS(PROT_EXEC, 0, 3),
		LOAD(args[3]),
		JUMP_BITS(MAP_ANONYMOUS, 1, 0),
		RETURN(SECCOMP_RET_USER_NOTIF),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(code), code };
	int fd = set_filter(&program, killable);

	/* Without CAP_SYS_ADMIN a filter requires no_new_privs. */
	if (fd == -EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = set_filter(&program, killable);
	return fd;
}

int exec_gate_filter(void)
{
	int fd = try_filter(true);

	return fd == -EINVAL ? try_filter(false) : fd;
}

static pid_t process_of(pid_t tid)
{
	char path[64], text[2048];
	const char *at;
	size_t n;
	int tgid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (read_file(path, text, sizeof(text) - 1, &n) < 0)
		return tid;
	text[n] = '\0';
	at = strstr(text, "\nTgid:");
	return at && sscanf(at, "\nTgid: %d", &tgid) == 1 ? (pid_t)tgid : tid;
}

/* Reads up to a NUL, at most one page at a time: the page after the string may not be mapped. */
static int read_string(pid_t pid, uint64_t address, char *buf, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	size_t at = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (at < size) {
		size_t n = MIN(size - at, (size_t)(4096 - ((address + at) & 4095)));
		ssize_t got = pread(fd, buf + at, n, (off_t)(address + at));

		if (got <= 0)
			return got < 0 ? -errno : -EFAULT;
		if (memchr(buf + at, '\0', (size_t)got))
			return 0;
		at += (size_t)got;
	}
	return -ENAMETOOLONG;
}

/* An answer carries the number of its report, so a late one is not taken for the answer to the next. */
static bool await_answer(int channel, uint32_t number)
{
	struct pollfd waiting = { .fd = channel, .events = POLLIN };
	uint32_t answer;

	for (;;) {
		int r = poll(&waiting, 1, ANSWER_TIMEOUT_MS);

		if (r < 0 && errno == EINTR)
			continue;
		if (r != 1 || recv(channel, &answer, sizeof(answer), 0) != sizeof(answer))
			return false;
		if (answer == number)
			return true;
	}
}

/*
 * Sends a file and waits for the answer, up to a timeout. Unanswered reports are counted in @missed of the
 * next report.
 */
static int report_file(int channel, const struct exec_gate_mapping *mapping)
{
	static struct exec_gate_report message;
	static uint32_t number, missed;

	message.pid = mapping->pid;
	message.execution = mapping->execution;
	message.address = mapping->address;
	message.length = mapping->length;
	message.offset = mapping->offset;
	message.number = ++number;
	message.missed = missed;
	snprintf(message.path, sizeof(message.path), "%s", mapping->path);
	int r = send_with_fd(channel, &message,
			     offsetof(struct exec_gate_report, path) + strlen(message.path) + 1, mapping->fd);

	/* -EAGAIN: the socket is full of reports that have not been read. */
	if (r < 0 && r != -EAGAIN)
		return r;
	if (r == -EAGAIN || !await_answer(channel, number))
		missed++;
	return 0;
}

/* Opens regular files only: opening a device or a FIFO may have side effects. */
static int open_file(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve };
	_cleanup_close_ int place = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	char name[64];
	struct stat st;
	int fd;

	if (place < 0)
		return -errno;
	if (fstat(place, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens a path as the process would: relative to its root, its working directory or @base. */
static int open_as(pid_t pid, int base, const char *path)
{
	bool absolute = path[0] == '/';
	_cleanup_close_ int dir = -1;
	char name[64];
	int fd;

	if (absolute)
		snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	else if (base == AT_FDCWD)
		snprintf(name, sizeof(name), "/proc/%d/cwd", (int)pid);
	else
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, base);
	dir = open(name, O_PATH | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = open_file(dir, path, absolute ? RESOLVE_IN_ROOT : 0);
	if (fd == -ELOOP && strncmp(path, "/proc/self/", strlen("/proc/self/")) == 0) {
		/* A magic link, which RESOLVE_IN_ROOT does not follow. */
		snprintf(name, sizeof(name), "/proc/%d/%.40s", (int)pid, path + strlen("/proc/self/"));
		fd = open_file(AT_FDCWD, name, 0);
	}
	return fd;
}

/* Completes @mapping with file and path; @number is the file descriptor in the process. */
static int report_descriptor(int channel, struct exec_gate_mapping *mapping, int number)
{
	_cleanup_close_ int fd = -1;
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)mapping->pid, number);
	n = readlink(link, path, sizeof(path) - 1);
	fd = open_file(AT_FDCWD, link, 0);
	if (n < 0 || fd < 0)
		return 0;
	path[n] = '\0';
	mapping->fd = fd;
	mapping->path = path;
	return report_file(channel, mapping);
}

/*
 * The address is known only with MAP_FIXED, which the dynamic linker uses for all segments but the first;
 * else the kernel chooses it.
 */
static int report_mapping(int channel, pid_t pid, const struct seccomp_data *data)
{
	bool fixed = data->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	struct exec_gate_mapping mapping = {
		.pid = pid,
		.address = fixed ? data->args[0] : 0,
		.length = fixed ? data->args[1] : 0,
		.offset = data->args[5],
	};

	return report_descriptor(channel, &mapping, (int)data->args[4]);
}

/* Reports the executed file and the interpreters named by "#!" lines. */
static int report_execution(int channel, pid_t pid, int base, const char *first)
{
	char path[PATH_MAX];
	int r = 0;

	snprintf(path, sizeof(path), "%s", first);
	for (int i = 0; r == 0 && i < INTERPRETERS_MAX; i++) {
		_cleanup_close_ int fd = open_as(pid, base, path);
		char line[PATH_MAX];
		ssize_t n;

		if (fd < 0)
			return 0; /* execve fails, too; the caller may try the next directory of PATH */
		r = report_file(channel, &(struct exec_gate_mapping){ pid, fd, path, .execution = true });
		n = pread(fd, line, sizeof(line) - 1, 0);
		if (n < 2 || memcmp(line, "#!", 2) != 0)
			break;
		line[n] = '\0';
		char *name = line + 2 + strspn(line + 2, " \t");

		name[strcspn(name, " \t\r\n")] = '\0';
		memmove(path, name, strlen(name) + 1);
	}
	return r;
}

static int report_call(const struct seccomp_notif *call, int channel)
{
	pid_t pid = process_of((pid_t)call->pid);
	char path[PATH_MAX];

	switch (call->data.nr) {
	case SYS_mmap:
		return report_mapping(channel, pid, &call->data);
	case SYS_execve:
		if (read_string((pid_t)call->pid, call->data.args[0], path, sizeof(path)) < 0)
			return 0;
		return report_execution(channel, pid, AT_FDCWD, path);
	case SYS_execveat:
		if (read_string((pid_t)call->pid, call->data.args[1], path, sizeof(path)) < 0)
			return 0;
		if (path[0] == '\0')
			return report_descriptor(channel,
						 &(struct exec_gate_mapping){ .pid = pid, .execution = true },
						 (int)call->data.args[0]);
		return report_execution(channel, pid, (int)call->data.args[0], path);
	default:
		return 0;
	}
}

/* @space: structures of newer kernels are larger. */
union notification {
	struct seccomp_notif call;
	struct seccomp_notif_resp answer;
	char space[1024];
};

void exec_gate_serve(int listener, int channel)
{
	struct seccomp_notif_sizes sizes;
	union notification call, answer;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 ||
	    sizes.seccomp_notif > sizeof(call) || sizes.seccomp_notif_resp > sizeof(answer))
		return;
	for (;;) {
		struct pollfd waiting = { .fd = listener, .events = POLLIN };

		if (poll(&waiting, 1, -1) < 0 && errno != EINTR)
			return;
		if ((waiting.revents & (POLLHUP | POLLERR)) && !(waiting.revents & POLLIN))
			return; /* no process with the filter is left */
		memset(&call, 0, sizeof(call));
		if (!(waiting.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call.call) < 0)
			continue;
		if (channel >= 0 && report_call(&call.call, channel) < 0) {
			close(channel);
			channel = -1;
		}
		memset(&answer, 0, sizeof(answer));
		answer.answer.id = call.call.id;
		answer.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND,
		      &answer.answer); /* fails if the caller was killed meanwhile */
	}
}
