// SPDX-License-Identifier: Apache-2.0
#include "trace/kernel_sites_specimens.h"

#include "base/macro.h"

/*
 * @site is at the label "specimen_NAME_site" in @code. The alignment separates the specimens' instructions.
 */
#define SPECIMEN(name, code)                                            \
	__asm__(".pushsection .text.gs_specimens, \"ax\", %progbits\n"  \
		".hidden specimen_" #name ", specimen_" #name "_site\n" \
		".globl specimen_" #name ", specimen_" #name "_site\n"  \
		".type specimen_" #name ", %function\n"                 \
		".balign 64\nspecimen_" #name ":\n" code "\n"           \
		".size specimen_" #name ", . - specimen_" #name "\n"    \
		".popsection\n");                                       \
	extern void specimen_##name(void);                              \
	extern const char specimen_##name##_site[];

#if defined(__x86_64__)
/*
 * The result is 0: a kernel whose return probe fails under a seccomp filter jumps to the result, and that
 * must not be code.
 */
#define RET "xor %eax, %eax; ret"
SPECIMEN(push, "specimen_push_site: push %rbp; pop %rbp; " RET)
SPECIMEN(push_extended, "specimen_push_extended_site: push %r15; pop %r15; " RET)
SPECIMEN(jump, "specimen_jump_site: jmp 1f; nop; 1: " RET)
SPECIMEN(branch, "specimen_branch_site: je 1f; nop; 1: " RET)
SPECIMEN(call, "specimen_call_site: call 1f; ret; 1: " RET)
SPECIMEN(nop1, "specimen_nop1_site: nop; " RET)
SPECIMEN(nop5, "specimen_nop5_site: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00; " RET)
SPECIMEN(nop10, "specimen_nop10_site: .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0; " RET)
SPECIMEN(other, "specimen_other_site: sub $8, %rsp; add $8, %rsp; " RET)
#elif defined(__aarch64__)
SPECIMEN(jump, "specimen_jump_site: b 1f; nop; 1: ret")
SPECIMEN(branch, "specimen_branch_site: cbz x0, 1f; nop; 1: ret")
SPECIMEN(call, "mov x9, x30; specimen_call_site: bl 1f; ret x9; 1: ret")
SPECIMEN(nop1, "specimen_nop1_site: nop; ret")
SPECIMEN(address, "specimen_address_site: adrp x9, specimen_address; ret")
SPECIMEN(other, "specimen_other_site: mov x9, x10; ret")
#endif

#define ROW(kind, name)                                                   \
	{                                                                 \
		SITE_KIND_##kind, specimen_##name, specimen_##name##_site \
	}

const struct specimen specimens[] = {
#if defined(__x86_64__)
	ROW(PUSH, push),   ROW(PUSH_EXTENDED, push_extended),
	ROW(NOP5, nop5),   ROW(NOP10, nop10),
#elif defined(__aarch64__)
	ROW(ADDRESS, address),
#endif
	ROW(JUMP, jump),   ROW(BRANCH, branch),
	ROW(CALL, call),   ROW(NOP1, nop1),
	ROW(OTHER, other),
};
const unsigned specimens_n = ARRAY_SIZE(specimens);
