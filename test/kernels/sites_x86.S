// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 whose functions begin with one kind of instruction each, and hold no other that a kernel
// might emulate: so whether and how each is probed tells what that kernel makes of the kind. cases.py has
// the table of what is expected. A function gives a number of its own, which a probe must leave alone.

	.section .note.GNU-stack, "", @progbits

	.macro function name
	.text
	.balign 64, 0xcc
	.globl \name
	.type \name, @function
\name:
	.endm

	.macro end name, result
	movl $\result, %eax
	ret
	.size \name, . - \name
	.endm

function cuInit
	push %rbx
	pop %rbx
	end cuInit, 1

function cuMemAlloc_v2
	push %r15
	pop %r15
	end cuMemAlloc_v2, 2

function cuMemFree_v2
	jmp 1f
1:	end cuMemFree_v2, 3

// As NVIDIA's driver has it: the jump to the function proper. It succeeds, so that a launch is an event.
function cuLaunchKernel
	cmpl $0x321cba00, state(%rip)
	je 1f
	jmp *proper(%rip)
1:	ud2
	.size cuLaunchKernel, . - cuLaunchKernel

launch:
	xorl %eax, %eax
	ret

function cuCtxSynchronize
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	end cuCtxSynchronize, 5

function cuStreamSynchronize
	.byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
	end cuStreamSynchronize, 6

function cuMemcpyHtoD_v2
	endbr64
	end cuMemcpyHtoD_v2, 7

function cuMemcpyDtoH_v2
	sub $24, %rsp
	add $24, %rsp
	end cuMemcpyDtoH_v2, 8

function cuStreamCreate
	end cuStreamCreate, 9

function cuEventRecord
	cmpl $0, state(%rip)
	end cuEventRecord, 10

// The red zone: data below the stack pointer while the nop runs, which a call put in its place would write
// over.
function cuEventSynchronize
	movl $11, -8(%rsp)
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	movl -8(%rsp), %eax
	ret
	.size cuEventSynchronize, . - cuEventSynchronize

	.data
	.balign 8
proper:	.quad launch
state:	.long 0
