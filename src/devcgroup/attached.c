// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/attached.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bpf/bpf.h>

enum { VERIFIER_BYTES = 64 << 10, DEPTH_MAX = 256 };

static int query(int cgroup, uint32_t flags, uint32_t *ids, uint32_t *n, uint32_t *ret_attach_flags)
{
	LIBBPF_OPTS(bpf_prog_query_opts, opts, .query_flags = flags, .prog_ids = ids, .prog_cnt = *n);
	int r = bpf_prog_query_opts(cgroup, BPF_CGROUP_DEVICE, &opts);

	if (r < 0)
		return r;
	*n = opts.prog_cnt;
	*ret_attach_flags = opts.attach_flags;
	return 0;
}

/* ---- reading ---- */

static void read_instructions(int fd, const struct bpf_prog_info *info, struct attached *a)
{
	struct bpf_prog_info wanted = { 0 };
	uint32_t size = sizeof(wanted), bytes = info->xlated_prog_len;

	if (bytes > PROGRAM_MAX * sizeof(struct bpf_insn)) {
		a->unusable = "it is too long";
		return;
	}
	a->insns = bytes ? malloc(bytes) : NULL;
	wanted.xlated_prog_insns = (uint64_t)(uintptr_t)a->insns;
	wanted.xlated_prog_len = bytes;
	if (!a->insns || bpf_obj_get_info_by_fd(fd, &wanted, &size) < 0 || !wanted.xlated_prog_insns ||
	    wanted.xlated_prog_len != bytes) {
		a->unusable = "its instructions are hidden";
		return;
	}
	a->n = bytes / (uint32_t)sizeof(struct bpf_insn);
	a->unusable = program_unusable(a->insns, a->n);
	if (!a->unusable)
		a->rules = program_ours(a->insns, a->n, &a->said);
}

int attached_original(const struct attached *ours, int *ret_program)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(ours->said.id);
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	struct attached original = { 0 };
	bool same;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) < 0 ||
	    info.type != BPF_PROG_TYPE_CGROUP_DEVICE)
		return -ENOENT;
	read_instructions(fd, &info, &original);
	same = original.n == ours->n - ours->rules &&
	       memcmp(original.insns, ours->insns + ours->rules, original.n * sizeof(*original.insns)) == 0;
	free(original.insns);
	if (!same)
		return -ENOENT;
	*ret_program = TAKE_FD(fd);
	return 0;
}

/* -ENOENT: it has been detached meanwhile, and freed. */
static int read_program(uint32_t id, struct attached *a)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int r;

	if (fd < 0)
		return -errno;
	r = bpf_obj_get_info_by_fd(fd, &info, &size);
	if (r < 0)
		return r;
	a->id = id;
	a->inherited = true;
	snprintf(a->name, sizeof(a->name), "%s", info.name);
	read_instructions(fd, &info, a);
	return 0;
}

/* From the cgroup itself upwards, which is the order of the list: a program may be attached to several. */
static void mark(struct attached_list *list, uint32_t id, const char *path, bool inherited)
{
	for (unsigned i = 0; i < list->n; i++) {
		if (list->list[i].id != id || list->list[i].cgroup[0])
			continue;
		snprintf(list->list[i].cgroup, sizeof(list->list[i].cgroup), "%s", path);
		list->list[i].inherited = inherited;
		return;
	}
}

/* Which cgroup each is attached to: this one, or one above. */
static int find_cgroups(int cgroup, const char *path, struct attached_list *list)
{
	_cleanup_close_ int at = fcntl(cgroup, F_DUPFD_CLOEXEC, 0);
	char above[PATH_MAX];

	snprintf(above, sizeof(above), "%s", path);
	for (unsigned depth = 0; at >= 0 && depth < DEPTH_MAX; depth++) {
		uint32_t ids[ATTACHED_MAX], n = ATTACHED_MAX, flags = 0;
		int r = query(at, 0, ids, &n, &flags), next;
		char *slash;

		if (r < 0)
			return r;
		if (depth == 0)
			list->flags = flags;
		for (uint32_t i = 0; i < n; i++)
			mark(list, ids[i], above, depth > 0);
		slash = strrchr(above, '/');
		if (!slash || !slash[1])
			return 0;
		slash[slash == above] = 0;
		next = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
	}
	return 0;
}

int attached_read(int cgroup, const char *path, struct attached_list *ret_list)
{
	struct attached_list list = { 0 };
	uint32_t ids[EFFECTIVE_MAX], n = EFFECTIVE_MAX, flags;
	int r = query(cgroup, BPF_F_QUERY_EFFECTIVE, ids, &n, &flags);

	if (r == -ENOSPC)
		list.incomplete = true;
	else if (r < 0)
		return r;
	n = MIN(n, (uint32_t)EFFECTIVE_MAX);
	list.list = calloc(MAX(n, 1u), sizeof(*list.list));
	if (!list.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		r = read_program(ids[i], &list.list[list.n]);
		if (r == 0)
			list.n++;
		else if (r != -ENOENT)
			break;
	}
	if (r == -ENOENT || r == -ENOSPC)
		r = 0;
	if (r == 0)
		r = find_cgroups(cgroup, path, &list);
	if (r < 0) {
		attached_done(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

void attached_done(struct attached_list *list)
{
	for (unsigned i = 0; list->list && i < list->n; i++)
		free(list->list[i].insns);
	free(list->list);
	*list = (struct attached_list){ 0 };
}

/* ---- exchanging ---- */

int attached_load(const struct bpf_insn *first, unsigned first_n, const struct bpf_insn *then,
		  unsigned then_n, const char *name, int *ret_program, struct devcgroup_why *why)
{
	_cleanup_free_ struct bpf_insn *insns = calloc(first_n + then_n, sizeof(*insns));
	_cleanup_free_ char *log = malloc(VERIFIER_BYTES);
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = VERIFIER_BYTES);
	int fd;

	if (!insns || !log)
		return -ENOMEM;
	log[0] = 0;
	memcpy(insns, first, first_n * sizeof(*insns));
	if (then_n > 0)
		memcpy(insns + first_n, then, then_n * sizeof(*insns));
	fd = bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, name, "Apache-2.0", insns, first_n + then_n, &opts);
	if (fd < 0) {
		devcgroup_because(why, "the kernel does not load the copy: %s: %.200s", strerror(-fd), log);
		return fd;
	}
	*ret_program = fd;
	return 0;
}

int attached_replace(int cgroup, const struct attached *old, int program)
{
	_cleanup_close_ int old_fd = bpf_prog_get_fd_by_id(old->id);
	LIBBPF_OPTS(bpf_prog_attach_opts, opts, .flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE,
		    .replace_prog_fd = old_fd);

	if (old_fd < 0)
		return -errno;
	return bpf_prog_attach_opts(program, cgroup, BPF_CGROUP_DEVICE, &opts);
}

int attached_remove(int cgroup, const struct attached *old)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(old->id);

	if (fd < 0)
		return -errno;
	return bpf_prog_detach2(fd, cgroup, BPF_CGROUP_DEVICE);
}
