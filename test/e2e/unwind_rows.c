// SPDX-License-Identifier: Apache-2.0
/* FILE: its rows as src/unwind makes them: "ADDRESS KIND CFA FP_SAVED FP RA_SAVED RA", an enum by number. */
#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"
#include "unwind/private.h"

int main(int argc, char **argv)
{
	_cleanup_close_ int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct making making;
	int r;

	if (making_begin(&making, fd) < 0)
		return 1;
	while ((r = making_step(&making)) > 0)
		;
	for (uint32_t i = 0; i < making.rows_n; i++) {
		const struct unwind_rule *rule = &making.rules[making.rows[i].rule];

		printf("%llx %u %d %u %d %u %d\n", (unsigned long long)(making.base + making.rows[i].pc),
		       rule->kind, rule->cfa, rule->fp_saved, rule->fp, rule->ra_saved, rule->ra);
	}
	making_done(&making);
	return r < 0;
}
