// SPDX-License-Identifier: Apache-2.0
/* What a helper process does before it reads its first message: gives up what its role does not need. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFINE_CAPABILITY(name_) (UINT64_C(1) << CAP_##name_)

struct confinement {
	const char *name; /* of the process, for ps: at most 15 characters */
	uint64_t capabilities; /* that it keeps if it has them: CONFINE_CAPABILITY(SYS_PTRACE) ... */
	bool opens; /* it may open files and folders, for reading */
	bool reads_memory; /* process_vm_readv() of other processes */
	bool shares_memory; /* maps it, and files with it */
	bool threads; /* and no processes */
	bool changes_rights; /* opens files as users other than root, by threads: setfsuid() ... */
	bool serves; /* accepts connections of sockets that it is given, with threads */
	bool connects; /* to others by TCP, and asks resolvers by UDP; never by UNIX sockets */
	/*
	 * With `opens`: NULL, or paths, NULL-terminated, below which alone it may open anything where the
	 * kernel has Landlock (5.13). Those that are not there are left out.
	 */
	const char *const *below;
	/*
	 * With `opens` and `below`: it also makes, replaces and removes files in the folder of the
	 * descriptor `folder`, each of at most `file_bytes`. Where the kernel has no Landlock its user's
	 * rights alone keep it from writing elsewhere.
	 */
	bool keeps_files;
	int folder;
	uint64_t file_bytes;
	/* With `keeps_files`: a database, which also writes to files in place, locks and maps them. */
	bool keeps_database;
	bool keeps_user; /* it stays its owner's user, whose files it keeps */
	/* It stays its owner's user, whose files it reads, where it has none of these capabilities. */
	uint64_t else_stays;
	uint64_t memory_bytes; /* RLIMIT_AS; 0: no limit */
};

/*
 * Ends with @owner (0: a service manager started it), cannot be traced or dump core, keeps the capabilities
 * alone, as the user nobody if it can change to that one, and filters system calls. In this order, so that a
 * failure leaves nothing of the later ones. -errno; -ESRCH: the owner has ended.
 */
int confine(const struct confinement *confinement, pid_t owner);
