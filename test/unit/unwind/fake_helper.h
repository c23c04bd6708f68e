// SPDX-License-Identifier: Apache-2.0
/* unwind/remote.c with a helper whose answers are made up, and without the kernel side. */
#pragma once

#include <bpf/bpf.h>
#include <sys/mman.h>

#include "unwind/remote.c"

static struct {
	struct helper_ops ops;
	void *userdata;
	struct unwind_question asked; /* the newest question */
	unsigned questions, rejected;
} fake;

int helper_new(_unused_ sd_event *event, _unused_ const struct helper_config *config,
	       const struct helper_ops *ops, void *userdata, struct helper **ret_helper)
{
	fake.ops = *ops;
	fake.userdata = userdata;
	fake.questions = fake.rejected = 0;
	*ret_helper = NULL;
	return 0;
}

void helper_free(_unused_ struct helper *helper)
{
}

int helper_send(_unused_ struct helper *helper, const void *message, size_t n, _unused_ int fd)
{
	memcpy(&fake.asked, message, MIN(n, sizeof(fake.asked)));
	fake.questions++;
	return 0;
}

void helper_deadline(_unused_ struct helper *helper, _unused_ int64_t in_ns)
{
}

void helper_reject(_unused_ struct helper *helper)
{
	fake.rejected++;
	fake.ops.lost(false, fake.userdata);
}

void helper_stats(_unused_ const struct helper *helper, struct helper_stats *ret_stats)
{
	*ret_stats = (struct helper_stats){ .starts = 1 };
}

/* The hash of lists. */
int bpf_map_update_elem(_unused_ int fd, _unused_ const void *key, _unused_ const void *value,
			_unused_ __u64 flags)
{
	return 0;
}

static inline int fake_array(size_t n)
{
	int fd = memfd_create("array", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)n) < 0)
		abort();
	return fd;
}

/* The maps' descriptors are closed: what is mapped stays. */
static inline struct unwind *fake_start(sd_event *event, uint32_t files)
{
	const struct unwind_maps maps = {
		.spaces = -1,
		.areas = fake_array(UNWIND_AREAS * sizeof(struct unwind_area)),
		.rows = fake_array(UNWIND_ROWS * sizeof(struct unwind_row)),
		.rules = fake_array(UNWIND_RULES * sizeof(struct unwind_rule)),
		.files = files,
	};
	struct unwind *u;

	if (unwind_new(&maps, &u) < 0 || unwind_set_reader(u, event, NULL) < 0)
		abort();
	close(maps.areas);
	close(maps.rows);
	close(maps.rules);
	return u;
}

/* A message of the answer; @fd is the callee's. */
static inline void fake_tell(enum unwind_told kind, int error, uint32_t n, const void *from, size_t size,
			     int fd)
{
	static union {
		struct unwind_told_head head;
		char bytes[UNWIND_TOLD_BYTES];
	} message;

	message.head = (struct unwind_told_head){ .kind = kind, .error = error, .n = n };
	if (size > 0)
		memcpy(message.bytes + sizeof(message.head), from, size);
	fake.ops.answer(message.bytes, sizeof(message.head) + size, fd, fake.userdata);
}
