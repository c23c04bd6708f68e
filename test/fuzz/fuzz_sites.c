// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a library whose functions are to be probed: a site that is chosen lies within the file, and
 * what is refused has a reason.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "file.h"
#include "trace/engine.h"

struct listing {
	size_t size;
	uint32_t n;
};

static int check(const struct trace_listing *listing, void *userdata)
{
	struct listing *of = userdata;
	const struct site *site = &listing->site;

	if (++of->n > 16U * probes_n || !listing->probe || !listing->symbol)
		abort();
	if (!memchr(site->reason, 0, sizeof(site->reason)) || site->reason[0] == '\0')
		abort();
	if (site->chosen && (site->class == SITE_REFUSED || listing->file_offset >= of->size ||
			     site->length > of->size - listing->file_offset))
		abort();
	return 0;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const bool all[PROBE_LIBRARIES] = { [0 ... PROBE_LIBRARIES - 1] = true };
	int fd = fuzz_file(data, size);
	_cleanup_(elf_closep) struct elf_file *file = fuzz_elf_file(fd);
	struct listing listing = { .size = size };
	struct site_rules rules;
	int r;

	if (!file)
		return 0;
	site_rules_default(elf_machine(file), &rules);
	r = trace_list_sites(fd, all, &rules, check, &listing);
	if (r != 0 && r != -ENOEXEC && r != -EOPNOTSUPP && r != -E2BIG)
		abort();
	return 0;
}
