// SPDX-License-Identifier: Apache-2.0
/*
 * Programs on devices that are attached to a cgroup of version 2, read and exchanged by bpf(2).
 */
#pragma once

#include "devcgroup/program.h"

enum { ATTACHED_MAX = 64 /* of one cgroup: the kernel's BPF_CGROUP_MAX_PROGS */, EFFECTIVE_MAX = 512 };

struct attached {
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	char cgroup[PATH_MAX]; /* where it is attached; "": above what we see */
	bool inherited; /* by a cgroup above */
	struct bpf_insn *insns; /* NULL: see unusable */
	unsigned n;
	unsigned rules; /* instructions of ours that it begins with */
	struct rules_said said; /* by these */
	const char *unusable; /* why it cannot be interpreted; NULL: it can */
};

struct attached_list {
	struct attached *list;
	unsigned n;
	uint32_t flags; /* how those of the cgroup itself are attached: BPF_F_ALLOW_MULTI, ... */
	bool incomplete; /* there are more than EFFECTIVE_MAX */
};

/*
 * All that decide for the cgroup: its own, and those of the cgroups above. -EPERM; -EOPNOTSUPP, -EINVAL: a
 * kernel without such programs.
 */
int attached_read(int cgroup, const char *path, struct attached_list *ret_list);
void attached_done(struct attached_list *list);

/*
 * The original that a program of ours stands for, if somebody holds it: the same object, which its owner
 * can detach. -ENOENT.
 */
int attached_original(const struct attached *ours, int *ret_program);
/* Loads a program of these parts. The verifier's last line in @why. */
int attached_load(const struct bpf_insn *first, unsigned first_n, const struct bpf_insn *then,
		  unsigned then_n, const char *name, int *ret_program, struct devcgroup_why *why);
/* Puts @program where @old is, atomically. -ENOENT: that is not there any more, or held by a link. */
int attached_replace(int cgroup, const struct attached *old, int program);
/* Of a program of ours alone, whose original is attached by another. */
int attached_remove(int cgroup, const struct attached *old);
