// SPDX-License-Identifier: Apache-2.0
/*
 * The function that runs Python code, _PyEval_EvalFrameDefault, is one of the largest that there are, and
 * compilers split it: what they hold for seldom used lies elsewhere, in a part (".cold") that stripped files
 * have no symbol for. Of Debian's 3.14 that is most of it.
 */
#pragma once

#include <stdint.h>

#include "elf/elf.h"

/*
 * The other part of the loop at @loop: what a direct jump in it leads into, behind where the unwind tables
 * say that a function, or a part of one, begins. No other function is entered there. Addresses as linked.
 * -ENOENT: there is none, or only one that is entered at its beginning, as other functions are.
 */
int python_loop_part(struct elf_file *elf, uint64_t loop, uint64_t loop_n, uint64_t *ret_part,
		     uint64_t *ret_n);
