# SPDX-License-Identifier: Apache-2.0
"""Entry points as a library of an unknown generation may have them: what of each can be probed, and what must not be.

Each stands for a function of the table of probes whose third argument is a size, and ends in body(), which says what it was called with. {slot} holds
its address, {magic} a word that is not the one it is compared with.
"""
import typing


class Shape(typing.NamedTuple):
    what: str
    text: str               # in the assembler's words, behind the label
    offset: int = None      # of the site; None: refused
    returns: bool = True    # a return probe works there
    reason: str = ""        # why it is refused
    called: bool = True     # it can be
    after: str = ""         # directives behind it
    kind: str = "function"  # of its symbol; said once, since assemblers differ in which of two they take


LEAVES, BACK, TABLE, ARGUMENT = "control leaves", "jumps back", "through a table", "an argument is overwritten"
UNKNOWN, NEWER, DATA, PART = "not analysed comes first", "newer than this gpusonde", "no instruction", "only a part of it"

X86 = [
    Shape("thunk", "cmpl $0x321cba00, {magic}(%rip); je 1f; jmp *{slot}(%rip); 1: mov $4, %eax; ret", 10),
    Shape("endbr64, thunk", "endbr64; cmpl $0x321cba00, {magic}(%rip); je 1f; jmp *{slot}(%rip); 1: mov $4, %eax; ret", 14),
    Shape("thunk whose branch is taken", "cmpl $7, {magic}(%rip); je 1f; mov $4, %eax; ret; 1: jmp *{slot}(%rip)", 7),
    Shape("comparison, jump through a register", "cmpl $1, {magic}(%rip); je 1f; mov {slot}(%rip), %rax; jmp *%rax; 1: ret", 7),
    Shape("jump through a register", "mov {slot}(%rip), %rax; jmp *%rax", reason=LEAVES),
    Shape("jump through memory", "jmp *{slot}(%rip)", reason=LEAVES),
    Shape("jump first", "jmp body", 0),
    Shape("loads from segments", "mov %fs:0, %rax; cmp %rax, %fs:0; jne 1f; jmp body; 1: ud2", 18),
    Shape("locked comparison that writes", "xor %eax, %eax; lock cmpxchg %r11d, {magic}(%rip); je 1f; jmp body; 1: jmp body", reason=UNKNOWN),
    Shape("an argument clobbered", "mov %rdi, %r11; xor %edi, %edi; cmpl $1, {magic}(%rip); mov %r11, %rdi; je 1f; jmp body; 1: ret", reason=ARGUMENT),
    Shape("push before the branch", "push $1; cmpl $1, {magic}(%rip); je 1f; 1: pop %rax; jmp body", 9, returns=False),
    Shape("stack moved before the branch", "sub $24, %rsp; mov %rdi, 8(%rsp); test %rdi, %rdi; je 1f; 1: add $24, %rsp; jmp body", 12, returns=False),
    Shape("data below the stack pointer", "mov %rdi, -8(%rsp); {nop5}; cmp %rdi, -8(%rsp); jne 1f; jmp body; 1: ud2", (5, 15)),
    Shape("a branch that not every call reaches", "mov %rcx, %rax; xchg %rcx, %rax; jrcxz 1f; test %rdi, %rdi; je 1f; 1: jmp body", reason=UNKNOWN),
    Shape("jrcxz", "test %rdi, %rdi; jrcxz 1f; je 1f; 1: jmp body", reason=LEAVES),
    Shape("a loop back to before the site", "xor %eax, %eax; 0: cmp $3, %eax; je 1f; inc %eax; jmp 0b; 1: jmp body", reason=BACK),
    Shape("the same with a prefix (bnd, which newer assemblers do not know)", "xor %eax, %eax; 0: cmp $3, %eax; je 1f; inc %eax; .byte 0xf2; jmp 0b; 1: jmp body", reason=BACK),
    Shape("a call into its middle", "xor %eax, %eax; 0: cmp $0, %eax; jne 1f; inc %eax; call 0b; jmp body; 1: ret", reason=BACK),
    Shape("a jump table", "mov %edi, %eax; and $1, %eax; cmp $2, %eax; jae 2f; lea 3f(%rip), %r11; movslq (%r11,%rax,4), %rax; add %r11, %rax; "
          "notrack jmp *%rax; 1: jmp body; 2: ud2; .balign 4; 3: .long 1b-3b, 1b-3b", reason=TABLE),
    Shape("a jump table behind a push", "push %rbx; mov %edi, %eax; and $1, %eax; lea 3f(%rip), %r11; movslq (%r11,%rax,4), %rax; add %r11, %rax; "
          "jmp *%rax; 1: pop %rbx; jmp body; .balign 4; 3: .long 1b-3b, 1b-3b", 0),
    Shape("a computed address", "lea 1f(%rip), %rax; test %rdi, %rdi; je 2f; lea 4(%rax), %rax; jmp *%rax; 1: .long 0; 2: jmp body", reason=TABLE),
    Shape("an address out of memory", "lea {slot}(%rip), %rax; test %rdi, %rdi; je 2f; mov (%rax), %rax; jmp *%rax; 2: jmp body", reason=TABLE),
    # The table is read twice: it leads back to the branch, and out.
    Shape("a loop by a table behind the prologue", "sub $8, %rsp; xor %eax, %eax; lea 3f(%rip), %r11; 0: test %eax, %eax; js 2f; inc %eax; "
          "movslq -4(%r11,%rax,4), %r10; add %r11, %r10; jmp *%r10; 1: add $8, %rsp; jmp body; 2: ud2; .balign 4; 3: .long 0b-3b, 1b-3b", reason=TABLE),
    Shape("hot-patchable", "data16 nop; push %rbx; pop %rbx; jmp body", 2),
    Shape("as tracers of functions want it", "{nop5}; push %rbx; pop %rbx; jmp body", (0, 5)),
    Shape("thread-local variable", "sub $8, %rsp; lea local@TLSDESC(%rip), %rax; call *local@TLSCALL(%rax); add $8, %rsp; jmp body", reason=LEAVES),
    Shape("without a size", "push %rbx; pop %rbx; jmp body", 0, after=".size {name}, 0"),
    Shape("without a size, and nothing for long behind", "push %rbx; pop %rbx; jmp body", reason=PART, after=".size {name}, 0; .fill 17000, 1, 0x90"),
    Shape("shorter than its site", "mov %edi, %eax", reason="no better", after="jmp body"),
    Shape("data", ".byte 6, 6, 6, 6", reason=DATA, called=False),
    Shape("zeros", ".zero 8", reason="zero bytes", called=False),
    Shape("APX: rex2", ".byte 0xd5, 0x18, 0x89, 0xc7; je 1f; 1: jmp body", reason=DATA, called=False),
    Shape("APX: jmpabs", ".byte 0xd5, 0, 0xa1; .quad 4096", reason=DATA, called=False),
    Shape("AVX10", ".byte 0x62, 0xf5, 0x7c, 0x48, 0x58, 0xc1; je 1f; 1: jmp body", reason="", called=False),
    Shape("not said to be a function", "push %rbx; pop %rbx; jmp body", reason="may be data", kind="notype"),
]

ARM64_THUNK = "adrp x16, {magic}; mov w17, #0xba00; movk w17, #0x321c, lsl #16; ldr w16, [x16, :lo12:{magic}]; cmp w16, w17; b.eq 1f; " \
              "adrp x16, {slot}; ldr x16, [x16, :lo12:{slot}]; br x16; 1: mov w0, #4; ret"
ARM64 = [
    Shape("thunk", ARM64_THUNK, 0),
    Shape("bti c, thunk", "bti c; " + ARM64_THUNK, 4),
    Shape("paciasp, thunk", "paciasp; " + ARM64_THUNK, 4, returns=False),
    Shape("no comparison", "adrp x16, {slot}; ldr x16, [x16, :lo12:{slot}]; br x16", 0),
    Shape("literal first", "ldr x16, 1f; br x16; .balign 8; 1: .quad 0", reason=LEAVES),
    Shape("signed jump", "bti c; mov x16, x9; braaz x16", reason="", called=False),
    Shape("signed return", "bti c; mov x9, x8; retaa", reason="", called=False),
    Shape("branch first", "b body", 0),
    Shape("frame, then a call", "stp x29, x30, [sp, #-16]!; mov x29, sp; bl body; ldp x29, x30, [sp], #16; ret", 8, returns=False),
    Shape("an argument clobbered", "mov x9, x0; mov x0, xzr; cbz x9, 1f; 1: b body", reason=ARGUMENT),
    Shape("a loop back to before the site", "mov w9, wzr; 0: add w9, w9, #1; cmp w9, #3; b.ne 0b; b body", reason=BACK),
    Shape("a call into its middle", "mov x9, xzr; 0: cbz x9, 1f; ret; 1: mov x9, #1; bl 0b; b body", reason=BACK),
    Shape("a jump table", "adr x9, 2f; and w10, w0, #1; ldr w10, [x9, w10, uxtw #2]; add x9, x9, w10, sxtw; br x9; 1: b body; 2: .word 1b-2b, 1b-2b",
          reason=TABLE),
    Shape("a computed address", "adr x9, 1f; and x10, x0, #1; add x9, x9, x10, lsl #2; br x9; 1: b body; b body", reason=TABLE),
    Shape("a loop by a table behind the prologue", "stp x29, x30, [sp, #-16]!; mov w9, wzr; 0: cbz x0, 1f; adr x10, 3f; ldr w11, [x10, w9, uxtw #2]; "
          "add w9, w9, #1; add x10, x10, w11, sxtw; br x10; 1: ldp x29, x30, [sp], #16; b body; 3: .word 0b-3b, 1b-3b", reason=TABLE),
    Shape("thread-local variable", "stp x29, x30, [sp, #-16]!; adrp x0, :tlsdesc:local; ldr x1, [x0, #:tlsdesc_lo12:local]; "
          "add x0, x0, #:tlsdesc_lo12:local; .tlsdesccall local; blr x1; ldp x29, x30, [sp], #16; b body", 4, returns=False),
    Shape("exclusive load", "ldaxr x9, [x0]; cbz x9, 1f; 1: b body", reason=UNKNOWN),
    Shape("without a size", "mov x9, x0; cbz x9, 1f; 1: b body", 4, after=".size {name}, 0"),
    Shape("shorter than its site", "mov x9, x0", reason="no better", after="b body"),
    Shape("data", ".word 0xffffffff", reason=DATA, called=False),
    Shape("zeros", ".word 0", reason="zero bytes", called=False),
    Shape("checked pointer arithmetic", ".word 0x9a003c00; cbz x9, 1f; 1: b body", reason="", called=False),
    Shape("not said to be a function", "b body", reason="may be data", kind="notype"),
]

# Functions of the table whose third argument is a size, of one byte or as many as stand beside it.
_COPIES = ["cuMemcpy", "cuMemcpyAsync", "cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2",
           "cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8_v2", "cuMemsetD8Async"]
_WIDE = [("cuMemsetD16_v2", 2), ("cuMemsetD32_v2", 4), ("cuMemsetD16Async", 2), ("cuMemsetD32Async", 4)]


def _twin(name):
    return name + ("_ptsz" if "Async" in name else "_ptds")


NAMES = [(name, 1) for name in _COPIES] + [(_twin(name), 1) for name in _COPIES] + _WIDE + [(_twin(name), width) for name, width in _WIDE]
# More of them, whose sizes lie elsewhere or nowhere.
PLAIN = ["cuCtxSynchronize", "cuEventQuery", "cuEventSynchronize", "cuStreamQuery", "cuStreamSynchronize", "cuCtxPushCurrent_v2", "cuCtxSetCurrent"]


def named(shapes):
    """[(name, width of an element or 0, shape)]"""
    names = NAMES + [(name, 0) for name in PLAIN]
    assert len(shapes) <= len(names), f"{len(shapes)} shapes, {len(names)} names"
    return [(name, width, shape) for (name, width), shape in zip(names, shapes)]


_HEAD = """
.section .data.rel.local, "aw"
.balign 8
slot: {quad} body
magic: .long 7, 0
.section .tdata, "awT"
.balign 8
.type local, @object
local: .quad 5
.size local, 8
.text
"""


def function(name, shape):
    lines = [".balign 16", f".globl {name}", f".type {name}, @{shape.kind}", f"{name}:",
             *shape.text.format(magic="magic", slot="slot", nop5=".byte 0x0f, 0x1f, 0x44, 0, 0", name=name).split("; "), f".size {name}, . - {name}",
             *shape.after.format(name=name).split("; ")]
    return "\n".join(lines) + "\n"


def source(shapes, more=""):
    """What the assembler makes a library of."""
    return _HEAD.format(quad=".quad") + "".join(function(name, shape) for name, _, shape in named(shapes)) + more
