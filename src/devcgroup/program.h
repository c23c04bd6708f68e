// SPDX-License-Identifier: Apache-2.0
/*
 * BPF programs that decide on devices, as instructions read back from the kernel: what one decides, and a
 * copy of it with our rules before it.
 *
 * The rules allow reading and writing, of devices or of majors as a whole, and leave all else to the
 * original, making nodes too. The original begins with the same
 * registers as before: r1 and r10; those that the rules have changed it cannot read, since they were not
 * set before it either. Their first instructions say that they are ours, how long they are, and what the
 * original is called and its number, so that it can be had back: itself if its owner holds it still, else
 * from the copy alone:
 *
 *	r0 = PROGRAM_MARK; r0 = LENGTH; r0 = NAME (4 times); r0 = NUMBER;
 *	r2 = access and type; if (r2 & mknod) goto original; r2 &= type; if (r2 != char) goto original;
 *	r3 = major; r4 = minor;
 *	for each device: if (r3 != MAJOR) goto next; if (r4 == MINOR) goto allow;
 *		or, of a whole major: if (r3 != MAJOR) goto next; goto allow;
 *	goto original;
 *	allow: r0 = 1; exit; original: ...
 */
#pragma once

#include <linux/bpf.h>

#include "devcgroup/devcgroup.h"

enum {
	PROGRAM_MARK = 0x67707573, /* "gpus" */
	PROGRAM_FRAME = 16, /* instructions of the rules beside two for each device */
	PROGRAM_NAME_AT = 2,
	PROGRAM_ID_AT = 6,
	PROGRAM_DEVICES_AT = 13, /* the first comparison of a major */
	PROGRAM_RULES_MAX = PROGRAM_FRAME + 2 * WANTED_MAX,
	PROGRAM_MAX = 65536, /* instructions of a program that is read */
	PROGRAM_STEPS = 1 << 20,
};

/* NULL, or why a program cannot be interpreted, and so not be loaded again. Of its instructions alone. */
const char *program_unusable(const struct bpf_insn *insns, unsigned n);

/*
 * What it decides: 1 allowed, 0 denied. -ENOTSUP: an instruction that is not known; -EFAULT, -ELOOP: the
 * kernel would not have let it run.
 */
int program_ask(const struct bpf_insn *insns, unsigned n, const struct bpf_cgroup_dev_ctx *ctx);

/* What our rules say. */
struct rules_said {
	struct wanted_device devices[WANTED_MAX];
	unsigned n;
	char name[BPF_OBJ_NAME_LEN]; /* of the original, padded with zeros */
	uint32_t id; /* of the original; another program's if it has been freed */
};

/* Writes the rules. Returns how many instructions they are. */
unsigned program_rules(const struct rules_said *said, struct bpf_insn ret_insns[static PROGRAM_RULES_MAX]);

/* How many instructions of rules it begins with; 0: it is not ours. */
unsigned program_ours(const struct bpf_insn *insns, unsigned n, struct rules_said *ret_said);
