// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 whose functions call back, FUNCTION(callback, data), for through.cc to throw through:
// with all that an unwinder wants to know. cuStreamSynchronize begins with an instruction that every
// kernel emulates, where a return probe may sit; cuEventSynchronize has its first one behind where the
// return address is moved away, so that it is probed at its entry only.

	.macro function name
	.text
	.balign 64
	.globl \name
#if defined(__aarch64__)
	.type \name, %function
#else
	.type \name, @function
#endif
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

#if defined(__aarch64__)
	.section .note.GNU-stack, "", %progbits

	.macro frame
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov x29, sp
	.endm

	.macro callback
	mov x9, x0
	mov x0, x1
	blr x9
	ldp x29, x30, [sp], #16
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	mov w0, #0
	ret
	.endm

function cuStreamSynchronize
	adrp x10, state
	frame
	callback
	end cuStreamSynchronize

function cuEventSynchronize
	frame
	bl nothing
	callback
	end cuEventSynchronize

function nothing
	ret
	end nothing
#else
	.section .note.GNU-stack, "", @progbits

	.macro callback
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	pop %rbp
	.cfi_restore 6
	.cfi_adjust_cfa_offset -8
	.endm

function cuStreamSynchronize
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset 6, -16
	callback
	xor %eax, %eax
	ret
	end cuStreamSynchronize

function cuEventSynchronize
	sub $16, %rsp
	.cfi_adjust_cfa_offset 16
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset 6, -32
	callback
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	xor %eax, %eax
	ret
	end cuEventSynchronize
#endif

	.data
	.balign 4
state:	.long 0
