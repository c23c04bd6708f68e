// SPDX-License-Identifier: Apache-2.0
#include "helper/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"

enum { NOBODY = 65534, WORDS = _LINUX_CAPABILITY_U32S_3 };

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH_ is this?"
#endif

/* ---- life and limits ---- */

/* 0: it still lives. */
static int die_with(pid_t owner)
{
	if (!owner)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == owner ? 0 : -ESRCH;
}

static void live_as(const char *name)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, name);
}

/* A lower limit, as of who runs this, stays. */
static int set_limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max = MIN(value, limit.rlim_max);
	return setrlimit((__rlimit_resource_t)resource, &limit) < 0 ? -errno : 0;
}

static int set_limits(const struct confinement *confinement)
{
	int r = set_limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = set_limit(RLIMIT_FSIZE, confinement->keeps_files ? confinement->file_bytes : 0);
	if (r == 0 && confinement->memory_bytes && !SANITIZED)
		r = set_limit(RLIMIT_AS, confinement->memory_bytes);
	return r;
}

/* ---- user and capabilities ---- */

static int set_capabilities(uint64_t wanted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t kept = sets[i].permitted & (uint32_t)(wanted >> (32 * i));

		sets[i] = (struct __user_cap_data_struct){ .effective = kept, .permitted = kept };
	}
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

/* Of the first 32, which is all that there is before CAP_MAC_OVERRIDE. */
static uint32_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	return syscall(SYS_capget, &header, sets) == 0 ? sets[0].effective : 0;
}

static bool may_change_user(void)
{
	const uint64_t needed = CONFINE_CAPABILITY(SETUID) | CONFINE_CAPABILITY(SETGID);

	return (effective_capabilities() & needed) == needed;
}

static bool has_any(uint64_t capabilities)
{
	return (effective_capabilities() & capabilities) != 0;
}

/*
 * Its owner's user, root above all, owns files and processes even without capabilities. Where the user cannot
 * be changed (for want of rights, or in a user namespace of one user), the filter is what keeps it from
 * writing.
 */
static void leave_user(const struct confinement *confinement)
{
	if (confinement->keeps_user || !may_change_user())
		return;
	if (confinement->else_stays && !has_any(confinement->else_stays))
		return;
	/* In a container without this capability root may read the memory of root's processes alone. */
	if (confinement->reads_memory && prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) != 1)
		return;
	prctl(PR_SET_KEEPCAPS, 1);
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return;
	prctl(PR_SET_KEEPCAPS, 0);
}

static int give_up_rights(const struct confinement *confinement)
{
	uint64_t capabilities = confinement->capabilities;

	for (unsigned long cap = 0; cap < 64; cap++)
		if (!(capabilities >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap); /* fails without CAP_SETPCAP, and beyond the last one */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	leave_user(confinement);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	return set_capabilities(capabilities);
}

/* ---- files ---- */

static void allow_reading(int ruleset, const char *path)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
						   .parent_fd = open(path, O_PATH | O_CLOEXEC) };
	struct stat st;

	if (rule.parent_fd < 0)
		return;
	if (fstat(rule.parent_fd, &st) == 0 && S_ISDIR(st.st_mode))
		rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent_fd);
}

static void allow_keeping(int ruleset, int folder)
{
	const struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				  LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
				  LANDLOCK_ACCESS_FS_REMOVE_FILE,
		.parent_fd = folder,
	};

	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/*
 * Refuses all of Landlock's rights on files to a process that opens none, should the filter of system calls
 * miss a way. One that reads other processes cannot have it: Landlock forbids that, too (ptrace access to
 * processes that are not in the same domain). Kernels before 5.13 have none.
 */
static void refuse_files(const struct confinement *confinement)
{
	const char *const *but_below = confinement->below;
	const struct landlock_ruleset_attr all = {
		/* All up to the newest of Landlock's first version. */
		.handled_access_fs = 2 * LANDLOCK_ACCESS_FS_MAKE_SYM - 1,
	};
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);

	if (ruleset < 0)
		return;
	for (size_t i = 0; but_below && but_below[i]; i++)
		allow_reading(ruleset, but_below[i]);
	if (confinement->keeps_files)
		allow_keeping(ruleset, confinement->folder);
	syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
}

/* ---- system calls ---- */

/* What every helper may call, and what each flag of struct confinement adds. */
static const int always[] = {
	SYS_read,         SYS_pread64,         SYS_readv,
	SYS_close,        SYS_fstat,           SYS_lseek,
	SYS_dup,          SYS_sendmsg,         SYS_recvmsg,
	SYS_sendto,       SYS_recvfrom,        SYS_ppoll,
	SYS_getpid,       SYS_gettid,          SYS_brk,
	SYS_munmap,       SYS_mremap,          SYS_madvise,
	SYS_futex,        SYS_clock_gettime,   SYS_clock_nanosleep,
	SYS_rt_sigreturn, SYS_rt_sigprocmask,  SYS_rt_sigaction,
	SYS_exit,         SYS_exit_group,      SYS_sched_yield,
	SYS_getrandom,    SYS_restart_syscall, SYS_newfstatat, /* fstat() of glibc 2.33 and later */
#ifdef SYS_poll
	SYS_poll,
#endif
};
static const int opening[] = {
	SYS_statx,    SYS_fstatfs, SYS_readlinkat, SYS_getdents64,
#ifdef SYS_readlink
	SYS_readlink,
#endif
#ifdef SYS_stat
	SYS_stat,
#endif
};
static const int keeping[] = { SYS_fsync };
/* By descriptors, which are all of files in the folder, or of files in memory. */
static const int keeping_database[] = {
	SYS_pwrite64, SYS_write,  SYS_writev, SYS_fdatasync, SYS_ftruncate,    SYS_fallocate,
	SYS_geteuid,  SYS_fchmod, SYS_fchown, SYS_fstatfs,   SYS_memfd_create,
};
static const uint32_t lock_commands[] = { F_GETLK, F_SETLK, F_SETLKW };
/* With a path that begins at the folder. */
static const int keeping_below[] = { SYS_openat, SYS_unlinkat, SYS_renameat2 };
static const int opening_unseen[] = { SYS_openat2 };
static const int reading_memory[] = { SYS_process_vm_readv };
static const int threading[] = {
	SYS_set_robust_list, SYS_rseq,       SYS_sched_setscheduler,
	SYS_setpriority,     SYS_ioprio_set, SYS_socketpair,
};
/* Of the calling thread alone, within what the process may have. */
static const int changing_rights[] = { SYS_getgroups, SYS_setgroups, SYS_capget, SYS_capset };
static const int changing_ids[] = { SYS_setfsuid, SYS_setfsgid };

static const int serving[] = {
	SYS_accept4,         SYS_epoll_create1,   SYS_epoll_ctl,  SYS_epoll_pwait, SYS_epoll_pwait2,
	SYS_eventfd2,        SYS_timerfd_create,  SYS_getsockopt, SYS_setsockopt,  SYS_getsockname,
	SYS_shutdown,        SYS_timerfd_settime, SYS_write,      SYS_writev,      SYS_rseq,
	SYS_set_robust_list, SYS_getpeername,     SYS_getrusage, /* GnuTLS's random numbers */
	SYS_uname, /* gethostname() */
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};
static const int connecting[] = {
	SYS_connect,    SYS_getsockname,     SYS_getpeername,
	SYS_getsockopt, SYS_setsockopt,      SYS_sendmmsg,
	SYS_shutdown,   SYS_write,           SYS_writev,
	SYS_pipe2,      SYS_eventfd2,        SYS_uname,
	SYS_socketpair, SYS_getuid,          SYS_geteuid,
	SYS_getgid,     SYS_getegid,         SYS_rseq,
	SYS_sysinfo,    SYS_set_robust_list, SYS_sched_getaffinity,
};
/* UNIX sockets would reach the node's own services. */
static const uint32_t connecting_domains[] = { AF_INET, AF_INET6 };
/* Of files in /proc/PID/ns: whose user namespace it is. The last one, of a resolver's socket alone. */
static const uint32_t ioctl_commands[] = { NS_GET_USERNS, NS_GET_PARENT, NS_GET_OWNER_UID, FIONREAD };
/* F_SETOWN and F_SETSIG would send signals to others. */
static const uint32_t fcntl_commands[] = {
	F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GET_SEALS, F_ADD_SEALS,
};

enum { CALLS_MAX = 128 };

struct filter {
	struct sock_filter code[2 * CALLS_MAX + 80];
	unsigned short n;
};

static void add_instruction(struct filter *filter, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	filter->code[filter->n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void allow(struct filter *filter, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
}

/* Goes on with the next rule if the call is another one; else the following instructions decide. */
static void begin_rule(struct filter *filter, int call, unsigned argument, size_t instructions)
{
	add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (uint8_t)(instructions + 1));
	add_instruction(filter, BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, args[0]) + 8 * argument, 0, 0);
}

/* Only with one of these values of an argument of 32 bits. */
static void allow_values(struct filter *filter, int call, unsigned argument, const uint32_t *values, size_t n)
{
	begin_rule(filter, call, argument, 2 * n + 1);
	for (size_t i = 0; i < n; i++) {
		add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, values[i], 0, 1);
		add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

/* Only without any of the bits @refused in an argument. */
static void allow_without(struct filter *filter, int call, unsigned argument, uint32_t refused)
{
	begin_rule(filter, call, argument, 3);
	add_instruction(filter, BPF_JMP | BPF_JSET | BPF_K, refused, 1, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

/* To another ID than root's, who owns the system's files. */
static void allow_but_root(struct filter *filter, int call)
{
	add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
	add_instruction(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
	add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

/* Threads, and no processes. The flags of clone3() lie in memory; glibc then calls clone(). */
static void allow_threads(struct filter *filter)
{
	begin_rule(filter, SYS_clone, 0, 3);
	add_instruction(filter, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	begin_rule(filter, SYS_clone3, 0, 1);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
}

/* No code, and without @shared nothing that others see: a file that is mapped so could be written to. */
static void allow_mapping(struct filter *filter, bool shared)
{
	begin_rule(filter, SYS_mmap, 2, 5);
	add_instruction(filter, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0);
	add_instruction(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]), 0, 0);
	add_instruction(filter, BPF_JMP | BPF_JSET | BPF_K, shared ? 0 : MAP_SHARED, 1, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

/*
 * Only for reading. The flags of openat2() lie in memory, where a filter cannot look: what it opens for
 * writing cannot be written to, since there is no write(), and mapped only as allow_mapping() says. Who
 * connects has write(), and so no openat2().
 */
static void allow_opening(struct filter *filter, bool connects)
{
	const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC;

	allow(filter, opening, ARRAY_SIZE(opening));
	if (!connects)
		allow(filter, opening_unseen, ARRAY_SIZE(opening_unseen));
	allow_values(filter, SYS_ioctl, 1, ioctl_commands, ARRAY_SIZE(ioctl_commands) - !connects);
	allow_without(filter, SYS_openat, 2, writing);
#ifdef SYS_open
	allow_without(filter, SYS_open, 1, writing);
#endif
}

static void allow_fcntl(struct filter *filter, bool locks)
{
	enum { N = ARRAY_SIZE(fcntl_commands), LOCKS = ARRAY_SIZE(lock_commands) };
	uint32_t commands[N + LOCKS];

	memcpy(commands, fcntl_commands, sizeof(fcntl_commands));
	memcpy(commands + N, lock_commands, sizeof(lock_commands));
	allow_values(filter, SYS_fcntl, 1, commands, locks ? N + LOCKS : N);
}

/* Of what lies in the folder alone; the same calls of others are decided by the rules that follow. */
static void allow_keeping_calls(struct filter *filter, int folder)
{
	allow(filter, keeping, ARRAY_SIZE(keeping));
	for (size_t i = 0; i < ARRAY_SIZE(keeping_below); i++) {
		begin_rule(filter, keeping_below[i], 0, 3);
		add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)folder, 0, 1);
		add_instruction(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
		add_instruction(filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	}
}

static int filter_calls(const struct confinement *confinement)
{
	const uint32_t self = (uint32_t)getpid();
	struct filter filter = { .n = 0 };
	struct sock_fprog program;

	add_instruction(&filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	add_instruction(&filter, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	add_instruction(&filter, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add_instruction(&filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	allow(&filter, always, ARRAY_SIZE(always));
	allow_mapping(&filter, confinement->shares_memory || confinement->keeps_database);
	allow_without(&filter, SYS_mprotect, 2, PROT_EXEC);
	allow_fcntl(&filter, confinement->keeps_database);
	allow_values(&filter, SYS_tgkill, 0, &self, 1); /* abort() */
	if (confinement->keeps_files)
		allow_keeping_calls(&filter, confinement->folder);
	if (confinement->keeps_database)
		allow(&filter, keeping_database, ARRAY_SIZE(keeping_database));
	if (confinement->opens)
		allow_opening(&filter, confinement->connects);
	if (confinement->reads_memory)
		allow(&filter, reading_memory, ARRAY_SIZE(reading_memory));
	if (confinement->threads)
		allow(&filter, threading, ARRAY_SIZE(threading));
	if (confinement->connects) {
		allow(&filter, connecting, ARRAY_SIZE(connecting));
		allow_values(&filter, SYS_socket, 0, connecting_domains, ARRAY_SIZE(connecting_domains));
	}
	if (confinement->threads || confinement->serves || confinement->connects)
		allow_threads(&filter);
	if (confinement->changes_rights) {
		allow(&filter, changing_rights, ARRAY_SIZE(changing_rights));
		for (size_t i = 0; i < ARRAY_SIZE(changing_ids); i++)
			allow_but_root(&filter, changing_ids[i]);
	}
	if (confinement->serves)
		allow(&filter, serving, ARRAY_SIZE(serving));
	add_instruction(&filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	program = (struct sock_fprog){ filter.n, filter.code };
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int confine(const struct confinement *confinement, pid_t owner)
{
	int r = die_with(owner);

	live_as(confinement->name);
	if (r == 0)
		r = set_limits(confinement);
	if (r == 0)
		r = give_up_rights(confinement);
	/* The change of the user cleared the signal that comes with the owner's end. */
	if (r == 0)
		r = die_with(owner);
	if (r == 0 && (!confinement->opens || confinement->below))
		refuse_files(confinement);
	if (r == 0 && !SANITIZED)
		r = filter_calls(confinement);
	return r;
}
