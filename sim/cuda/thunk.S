// SPDX-License-Identifier: Apache-2.0
/*
 * Entry points of the shape that NVIDIA's driver has: a comparison, a conditional branch that every call
 * passes with its arguments untouched, an indirect jump. The flag never matches; both ways lead to the same
 * function.
 */
#define CONCAT(a, b) a##b

#if defined(__x86_64__)
#define THUNK(name)                                   \
	.globl name;                                  \
	.type name, @function;                        \
	.p2align 4;                                   \
	name: cmpl $0x321cba00, thunk_flag(%rip);     \
	je 1f;                                        \
	jmp *CONCAT(slot_, name)(%rip);               \
	1: jmp *CONCAT(slot_, name)(%rip);            \
	.size name, .- name;                          \
	.pushsection .data.rel.ro, "aw", @progbits;   \
	.p2align 3;                                   \
	CONCAT(slot_, name): .quad CONCAT(entry_, name); \
	.popsection;
#elif defined(__aarch64__)
#define THUNK(name)                                   \
	.globl name;                                  \
	.type name, %function;                        \
	.p2align 4;                                   \
	name: adrp x16, thunk_flag;                   \
	mov w17, #0xba00;                             \
	movk w17, #0x321c, lsl #16;                   \
	ldr w16, [x16, #:lo12:thunk_flag];            \
	cmp w16, w17;                                 \
	b.eq 1f;                                      \
	1: adrp x16, CONCAT(slot_, name);             \
	ldr x16, [x16, #:lo12:CONCAT(slot_, name)];   \
	br x16;                                       \
	.size name, .- name;                          \
	.pushsection .data.rel.ro, "aw", %progbits;   \
	.p2align 3;                                   \
	CONCAT(slot_, name): .quad CONCAT(entry_, name); \
	.popsection;
#endif

#define THUNK_ONE(name) THUNK(name)
#define THUNK_PTSZ(name) THUNK(name) THUNK(name##_ptsz)
#define THUNK_PTDS(name) THUNK(name) THUNK(name##_ptds)
#define DRIVER(name, twin, since, need, implementation, parameters, arguments) THUNK_##twin(name)

	.data
	.p2align 2
thunk_flag:
	.long 0

	.text
#include "sim/cuda/driver.def"

	.section .note.GNU-stack, "", %progbits
