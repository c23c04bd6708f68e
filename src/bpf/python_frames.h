// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: reads Python frames and their code objects, and adds them to a walk. The functions
 * that are not static: as in shares.h.
 */
#pragma once

#include "bpf/python.h"

enum {
	PYTHON_TAGS = 3,
	PYTHON_PAGE = 4096, /* the least of any kernel */
};
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

static __always_inline __u64 hash_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * HASH_FACTOR;
	return hash ^ hash >> 29;
}

/* A member of what was read; @at is masked to lie in it. */
#define CODE_WORD(walk, at) (*(__u64 *)((walk)->code + ((at)&0x78)))
#define FRAME_WORD(walk, at) (*(__u64 *)((walk)->frames_read + ((at)&0x3f8)))
#define FRAME_INT(walk, at) (*(__u32 *)((walk)->frames_read + ((at)&0x3fc)))
#define FRAME_BYTE(walk, at) ((walk)->frames_read[(at)&0x3ff])
_Static_assert(sizeof(((struct walk *)0)->frames_read) == 0x400 && sizeof(((struct walk *)0)->code) == 0x80,
	       "masks");

/* Products that do not wait for each other, unlike hash_mix()'s: most of what a frame costs is this. */
static __always_inline __u64 words_hash(const __u64 *words, __u32 n)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < n; i++)
		sum += words[i] * (HASH_FACTOR * (2 * i + 1));
	return hash_mix(0, sum ^ sum >> 32);
}

/*
 * Of a code object without a version: its name's hash, and how its table of lines begins and ends. What
 * follows a short table in memory counts, too: at worst, a stack is sent once more. What cannot be read
 * counts as 0.
 */
static __always_inline __u64 python_deep(const struct trace_python *python, struct walk *walk)
{
	__u64 lines = CODE_WORD(walk, python->code_lines), n;
	__u64 hash = user_word(CODE_WORD(walk, python->code_name) + python->text_hash);

	/* The size, the bytes' own hash, and the bytes. */
	bpf_probe_read_user(walk->end, sizeof(walk->end), (void *)(lines + python->bytes_size));
	n = walk->end[0];
	walk->end[1] = hash;
	hash = words_hash(walk->end, sizeof(walk->end) / 8);
	if (n > PYTHON_END) {
		bpf_probe_read_user(walk->end, PYTHON_END,
				    (void *)(lines + python->bytes_data + n - PYTHON_END));
		hash = hash_mix(hash, words_hash(walk->end, PYTHON_END / 8));
	}
	return hash;
}

static __always_inline __u32 python_check(const struct trace_python *python, struct walk *walk)
{
	__u64 hash = words_hash((const __u64 *)walk->code, TRACE_PYTHON_CODE / 8);

	if (python->flags & TRACE_PYTHON_DEEP)
		hash += python_deep(python, walk) * HASH_FACTOR;
	return hash ^ hash >> 32;
}

static __always_inline void bit_set(__u64 bits[2], __u32 i)
{
	if (i < 64)
		bits[0] |= 1ULL << i;
	else
		bits[1] |= 1ULL << (i & 63);
}

/* Reads a code object, each once in a walk. Its check in walk->check. False: it cannot be read. */
static __always_inline bool python_code(const struct trace_python *python, struct walk *walk, __u64 code)
{
	struct walk_code *met = &walk->met[(code >> 4 ^ code >> 9) & (PYTHON_MET - 1)];
	__u64 bytes = python->code_n;

	if (met->code == code && met->walk == walk->number) {
		walk->check = met->check;
		return true;
	}
	SHOW_BOUND(bytes);
	if (bytes > TRACE_PYTHON_CODE)
		bytes = TRACE_PYTHON_CODE;
	if (!code || bpf_probe_read_user(walk->code, bytes, (void *)(code + python->code_from)))
		return false;
	walk->check = python_check(python, walk);
	met->code = code;
	met->walk = walk->number;
	met->check = walk->check;
	return true;
}

/*
 * Reads the part of a frame that is needed, unless it was read with the one before. With it are read those
 * before it in its page, which is in memory if the frame is. Its offset in walk->frames_read; -1: it cannot
 * be read.
 */
static __always_inline int python_read(const struct trace_python *python, struct walk *walk, __u64 frame)
{
	__u64 at = frame + python->frame_from, bytes = python->frame_n, before = at - walk->frames_at;

	if (before <= PYTHON_REACH && (__s64)before <= walk->frames_last && !(before & 7))
		return before;
	before = at & (PYTHON_PAGE - 1);
	if (before > PYTHON_REACH)
		before = PYTHON_REACH;
	if (!(python->flags & TRACE_PYTHON_OWNER) || at & 7)
		before = 0;
	SHOW_BOUND(bytes);
	if (bytes > TRACE_PYTHON_FRAME)
		bytes = TRACE_PYTHON_FRAME;
	walk->frames_at = at - before;
	walk->frames_last = before;
	bytes += before;
	SHOW_BOUND(bytes);
	if (bytes > PYTHON_FRAMES)
		return -1;
	if (bpf_probe_read_user(walk->frames_read, bytes, (void *)walk->frames_at)) {
		walk->frames_last = -1;
		return -1;
	}
	return before;
}

/*
 * Where the instruction at @address is in its code object, or would be, if it is one of a thread's own copy.
 * UINT32_MAX: nowhere near it.
 */
static __noinline __u32 python_place(const struct trace_python *python, const struct walk *walk, __u32 from,
				     __u64 code, __u64 address)
{
	__u64 at = address - code;
	__u32 copy = python->code_tlbc ? FRAME_INT(walk, from + python->frame_tlbc) : 0;

	/* The first one is in the code object itself. */
	if (copy) {
		__u64 copies = user_word(code + python->code_tlbc);

		if (copy >= user_word(copies))
			return -1;
		at = address - user_word(copies + 8 + 8ULL * copy) + python->code_instructions;
	}
	return at >> 32 ? -1 : at;
}

/* Puts a frame behind the others. False: there is no room. */
static __always_inline bool python_put(struct walk *walk, __u64 code, __u32 at, __u32 check)
{
	__u64 n = walk->n;

	SHOW_BOUND(n);
	if (n >= TRACE_STACK_MAX) {
		walk->flags |= TRACE_STACK_CUT;
		return false;
	}
	walk->frames[n].code = code;
	walk->frames[n].at = at;
	walk->frames[n].check = check;
	walk->hash = hash_mix(hash_mix(walk->hash, code), (__u64)at << 32 | check);
	walk->n = n + 1;
	return true;
}

/* Adds the Python frame at @from in walk->frames_read. False: it cannot be read, or there is no room. */
static __always_inline bool python_add(const struct trace_python *python, struct walk *walk, __u32 from)
{
	__u64 code = FRAME_WORD(walk, from + python->frame_code), at;
	__u32 n = walk->n;

	if (python->flags & TRACE_PYTHON_TAGGED)
		code &= ~(__u64)PYTHON_TAGS;
	if (!python_code(python, walk, code)) {
		walk->flags |= TRACE_STACK_PART;
		return false;
	}
	at = python->flags & TRACE_PYTHON_LASTI ?
		     FRAME_INT(walk, from + python->frame_at) :
		     python_place(python, walk, from, code, FRAME_WORD(walk, from + python->frame_at));
	if (!python_put(walk, code, at, walk->check))
		return false;
	if (python->frame_entry ? FRAME_BYTE(walk, from + python->frame_entry) == 1 :
				  !(python->flags & TRACE_PYTHON_OWNER))
		bit_set(walk->entries, n);
	return true;
}
