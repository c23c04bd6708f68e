// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a library whose functions are to be probed: a site that is chosen lies within the file, and
 * what is refused has a reason.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "file.h"
#include "trace/list.h"

struct listing {
	size_t size;
	uint32_t n;
};

static int check(const struct trace_listing *listing, void *userdata)
{
	struct listing *of = userdata;
	const struct site *site = &listing->site;

	if (++of->n > 16U * probes_n + 8192 || !listing->probe == !listing->user || !listing->symbol)
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
	struct site_query query = { .libraries = { [0 ... PROBE_LIBRARIES - 1] = true },
				    .users = LIBRARY_USER_BIT(0) };
	int fd = fuzz_file(data, size);
	_cleanup_(elf_closep) struct elf_file *file = fuzz_elf_file(fd);
	struct listing listing = { .size = size };
	int r;

	if (!file)
		return 0;
	library_set_user_text("libfoo.so:*a*,cu?? arg0:string returns");
	site_rules_default(elf_machine(file), &query.rules);
	r = trace_list_sites(fd, &query, check, &listing, NULL);
	if (r != 0 && r != -ENOEXEC && r != -EOPNOTSUPP && r != -E2BIG)
		abort();
	return 0;
}
