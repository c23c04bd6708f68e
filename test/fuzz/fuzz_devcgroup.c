// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "devcgroup/hierarchy.h"
#include "devcgroup/program.h"
#include "devcgroup/rules.h"

/* A program that somebody attached: it is judged, or not; within its memory and a bound of steps. */
static void ask_program(const uint8_t *data, size_t size)
{
	static struct bpf_insn insns[4096];
	const struct bpf_cgroup_dev_ctx ctx = { ACCESS_OPEN << 16 | BPF_DEVCG_DEV_CHAR, 195, 0 };
	size_t n = MIN(size, sizeof(insns)) / sizeof(insns[0]);
	struct rules_said said;
	unsigned rules;
	int answer;

	memcpy(insns, data, n * sizeof(insns[0]));
	answer = program_ask(insns, (unsigned)n, &ctx);
	if (answer > 1 || (answer >= 0 && program_unusable(insns, (unsigned)n)))
		abort();
	rules = program_ours(insns, (unsigned)n, &said);
	if (rules >= PROGRAM_FRAME && rules < n && said.n <= WANTED_MAX)
		return;
	if (rules > 0)
		abort();
}

/* What is said to lie below a mount does. */
static void find_path(const uint8_t *data, size_t size)
{
	static struct cgroup_mounts mounts;
	struct cgroup_mount *m = &mounts.list[0];
	const uint8_t *nul = memchr(data, 0, size);
	size_t first = nul ? (size_t)(nul - data) : size;
	char path[PATH_MAX], below[PATH_MAX];

	if (cgroup_mount_parse((const char *)data, first, m) < 0)
		return;
	if (m->root[0] != '/' || m->point[0] != '/')
		abort();
	for (int h = 0; h < HIERARCHIES; h++)
		if (cgroup_line_find((const char *)data + first, size - first, (enum hierarchy)h, path,
				     sizeof(path)) == 0 &&
		    cgroup_path_below(&mounts, m, path, below) == 0 &&
		    (below[0] != '/' || strstr(below, "/../") || strstr(below, "//")))
			abort();
}

static void read_list(const uint8_t *data, size_t size)
{
	static char list[RULES_BYTES];
	struct drivers drivers;
	size_t n = MIN(size, sizeof(list) - 1);

	memcpy(list, data, n);
	list[n] = 0;
	if (rules_allow(list, 195, 0, ACCESS_OPEN) && !rules_allow(list, 195, 0, ACCESS_READ))
		abort();
	drivers_parse(list, n, &drivers);
	if (drivers.n > DRIVERS_MAX)
		abort();
	for (unsigned i = 0; i < drivers.n; i++)
		if (strncmp(drivers.list[i].name, "nvidia", 6) != 0 ||
		    !drivers_name(&drivers, drivers.list[i].major))
			abort();
}

/* The first byte says what the rest is. */
int fuzz_one(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'p':
		ask_program(data + 1, size - 1);
		break;
	case 'm':
		find_path(data + 1, size - 1);
		break;
	default:
		read_list(data + 1, size - 1);
		break;
	}
	return 0;
}
