// SPDX-License-Identifier: Apache-2.0
/*
 * One link for many sites: Linux 6.6 and later. The parameters are those of include/uapi/linux/bpf.h, which
 * Debian 12's version lacks.
 */
#include "trace/attach_private.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/trace_multi.h"

enum {
	LINK_CREATE = 28, /* BPF_LINK_CREATE */
	MULTI_RETURN = 1, /* BPF_F_UPROBE_MULTI_RETURN */
};

struct multi_link {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t zero;
};

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int link_create(struct multi_link *link)
{
	int fd;

	link->attach_type = ATTACH_UPROBE_MULTI;
	fd = (int)syscall(SYS_bpf, LINK_CREATE, link, sizeof(*link));
	return fd < 0 ? -errno : fd;
}

/*
 * Tries to attach to a directory, which always fails: with -EBADF on a kernel that has these links, otherwise
 * with another error.
 */
static int multi_try(struct attach_backend *backend, struct attach_error *ret_error)
{
	struct attachment any = { .backend = backend, .empty = true };
	const uint64_t offset = 0;
	struct multi_link link = {
		.prog_fd = (uint32_t)attach_program(&any, 0),
		.path = address_of("/"),
		.offsets = address_of(&offset),
		.count = 1,
	};
	int r = link_create(&link);

	if (r == -EBADF)
		return 0;
	if (r >= 0)
		close(r);
	attach_error_set(ret_error, "the kernel has no uprobe_multi links: %s",
			 strerror(r < 0 ? -r : EINVAL));
	return -EOPNOTSUPP;
}

static int multi_make(struct attachment *attachment, const struct attach_site *sites, size_t n)
{
	_cleanup_free_ uint64_t *offsets = calloc(n, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(n, sizeof(*cookies));
	char path[32];
	struct multi_link link = {
		.prog_fd = (uint32_t)attach_program(attachment, 0),
		.path = address_of(path),
		.offsets = address_of(offsets),
		.cookies = address_of(cookies),
		.count = (uint32_t)n,
		.multi_flags = attachment->returns ? MULTI_RETURN : 0,
		.pid = (uint32_t)attachment->pid,
	};
	int fd;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		offsets[i] = sites[i].offset;
		cookies[i] = attach_site_value(&sites[i]);
	}
	attach_links_wait(attachment->backend, attachment->file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", attachment->file);
	fd = link_create(&link);
	if (fd < 0)
		return fd;
	attachment->parts[attachment->parts_n++] = (struct attach_part){ .fd = fd };
	return 0;
}

const struct attach_way attach_way_multi = {
	.name = "uprobe_multi",
	.object = trace_multi,
	.object_n = sizeof(trace_multi),
	.multi = true,
	.try = multi_try,
	.make = multi_make,
};
