// SPDX-License-Identifier: Apache-2.0
//
// What sites_x86.S is, for arm64: functions that begin with one kind of instruction each. cases.py has the
// table of what is expected.
//
// Whether the kernel simulates a probed instruction shows in what it does to the maps; whether it does so
// rightly shows in the result: each function makes its number in a way that goes wrong where a branch is
// not taken or an address is not the right one.

	.section .note.GNU-stack, "", %progbits

	.macro function name
	.text
	.balign 64
	.globl \name
	.type \name, %function
\name:
	.endm

	.macro end name, result
	mov w0, #\result
	ret
	.size \name, . - \name
	.endm

// As NVIDIA's driver has it. The address that adrp makes is used.
function cuInit
	adrp x2, state
	mov w1, #0xba00
	movk w1, #0x321c, lsl #16
	ldr w2, [x2, #:lo12:state]
	cmp w2, w1
	b.eq 1f
	mov w0, #99
	ret
1:	end cuInit, 1

function cuMemAlloc_v2
	b 1f
	udf #0
1:	end cuMemAlloc_v2, 2

// The argument is never NULL, so it is not taken.
function cuMemFree_v2
	cbz x0, 1f
	end cuMemFree_v2, 3
1:	udf #0

function cuLaunchKernel
	tbz w0, #0, 1f			// the argument is the address of a page: taken
	udf #0
1:	mov w0, #0
	ret
	.size cuLaunchKernel, . - cuLaunchKernel

// A conditional branch behind what leaves the arguments alone; flags are those of a compare before it.
function cuMemcpyDtoH_v2
	cmp xzr, xzr
	b.eq 1f
	udf #0
1:	end cuMemcpyDtoH_v2, 8

// As most functions of NVIDIA's runtime begin: the first that is simulated is a call, behind which nobody
// finds the way to the caller.
function cuStreamSynchronize
	stp x29, x30, [sp, #-16]!
	mov x29, sp
	bl 1f
	ldp x29, x30, [sp], #16
	end cuStreamSynchronize, 6
1:	ret

// Where calls may land, then a branch.
function cuStreamDestroy_v2
	bti c
	b 1f
	udf #0
1:	end cuStreamDestroy_v2, 12

function cuEventSynchronize
	adr x9, 1f
	ldr w0, [x9]
	ret
1:	.long 11
	.size cuEventSynchronize, . - cuEventSynchronize

function cuCtxSynchronize
	nop
	end cuCtxSynchronize, 5

function cuMemcpyHtoD_v2
	paciasp
	autiasp
	end cuMemcpyHtoD_v2, 7

function cuStreamCreate
	end cuStreamCreate, 9		// mov

function cuEventRecord
	sub sp, sp, #32
	add sp, sp, #32
	end cuEventRecord, 10

function cuCtxSetCurrent
	stp x29, x30, [sp, #-16]!
	ldp x29, x30, [sp], #16
	end cuCtxSetCurrent, 13

	.data
	.balign 4
state:	.long 0x321cba00
