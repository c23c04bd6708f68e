// SPDX-License-Identifier: Apache-2.0
/*
 * Specimens that do what happens on kernels that show a probe's own system call to seccomp filters: once a
 * return probe is attached, or the site is optimised, they make a system call that no filter knows, and
 * crash if it gives another error than it does without a filter.
 */
#include "trace/kernel_sites_specimens.h"

#include "base/macro.h"

/*
 * The return address tells of a return probe: a trampoline is not in this program. The site's first byte
 * tells of an optimised probe, which is a call.
 */
__asm__(".pushsection .text.failing_specimens, \"ax\", %progbits\n"
	".hidden failing_jump, failing_jump_site, failing_nop5, failing_nop5_site\n"
	".globl failing_jump, failing_jump_site, failing_nop5, failing_nop5_site\n"
	".type failing_jump, %function\n"
	".balign 64\nfailing_jump:\n"
	"failing_jump_site: jmp 1f; nop\n"
	"1: mov (%rsp), %rax\n"
	"lea __executable_start(%rip), %rcx; cmp %rcx, %rax; jb failing_call\n"
	"lea etext(%rip), %rcx; cmp %rcx, %rax; ja failing_call\n"
	"ret\n"
	".size failing_jump, . - failing_jump\n"
	".type failing_nop5, %function\n"
	".balign 64\nfailing_nop5:\n"
	"failing_nop5_site: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"cmpb $0xe8, failing_nop5_site(%rip); je failing_call\n"
	"ret\n"
	".size failing_nop5, . - failing_nop5\n"
	".balign 64\nfailing_call:\n"
	"mov $400, %eax; syscall\n" /* a number that is not used */
	"cmp $-38, %rax; jne 2f\n" /* -ENOSYS */
	"ret\n"
	"2: ud2\n"
	".popsection\n");

extern void failing_jump(void), failing_nop5(void);
extern const char failing_jump_site[], failing_nop5_site[];

const struct specimen specimens[] = {
	{ SITE_KIND_JUMP, failing_jump, failing_jump_site },
	{ SITE_KIND_NOP5, failing_nop5, failing_nop5_site },
};
const unsigned specimens_n = ARRAY_SIZE(specimens);
