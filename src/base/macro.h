// SPDX-License-Identifier: Apache-2.0
/*
 * src/base is the lowest layer (L0): small, generic C that every other folder may include and that includes
 * nothing of ours but itself.
 *
 * Invariants
 *  1. No module here depends on GPUs, metrics or socket protocols.
 *  2. Nothing here has a thread; modules with global state (log, clock) may be used from any thread, an
 *     object may be used by one thread at a time.
 *  3. Functions that can fail return 0 or a negative errno and leave their ret_ arguments untouched on
 *     failure; a bool result answers a question ("was it found?").
 *  4. Destructors (_done, _free) accept NULL and zeroed objects, so that they can be used with _cleanup_.
 *  5. Everything that grows has a limit, given by the caller or defined beside it.
 *  6. Only yaml.c needs a library beyond libc and libm; it is in a static library of its own so that the
 *     driver's child process and the simulated driver do not link libyaml.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, first) __attribute__((format(printf, fmt, first)))
#define _unused_ __attribute__((unused))

/*
 * The sanitizers' runtimes reserve terabytes, make system calls of their own and know no processes that share
 * memory.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(undefined_behavior_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Defines @name, for use as _cleanup_(name) on a variable of the pointer type @type:
 *	DEFINE_CLEANUP(struct yaml_doc *, yaml_doc_free, yaml_doc_freep)
 *	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
 */
#define DEFINE_CLEANUP(type, free_fn, name)       \
	_unused_ static inline void name(type *p) \
	{                                         \
		if (*p)                           \
			free_fn(*p);              \
	}

/* Takes the address of any object pointer; uses memcpy because that pointer's type is not void *. */
static inline void freep(void *p)
{
	void *heap;

	memcpy(&heap, p, sizeof(heap));
	free(heap);
}
#define _cleanup_free_ _cleanup_(freep)

/* Evaluates to the variable's value and sets the variable to NULL: transfers ownership. */
#define TAKE_PTR(p)                            \
	__extension__({                        \
		__typeof__(p) *_take = &(p);   \
		__typeof__(p) _taken = *_take; \
		*_take = NULL;                 \
		_taken;                        \
	})
#define TAKE_FD(fd)                  \
	__extension__({              \
		int *_take = &(fd);  \
		int _taken = *_take; \
		*_take = -1;         \
		_taken;              \
	})

/*
 * The index of the first of @n sorted elements for which @before, an expression of @i, is false; @n if there
 * is none.
 */
#define LOWER_BOUND(n, i, before)                             \
	__extension__({                                       \
		size_t _low = 0, _high = (n);                 \
		while (_low < _high) {                        \
			size_t i = _low + (_high - _low) / 2; \
			if (before)                           \
				_low = i + 1;                 \
			else                                  \
				_high = i;                    \
		}                                             \
		_low;                                         \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Evaluate each argument once. The locals are numbered, so that MIN(a, MIN(b, c)) shadows nothing. The macros
 * in <sys/param.h> evaluate arguments twice.
 */
#undef MIN
#undef MAX
#define MIN(a, b) PICK(a, b, <, __COUNTER__)
#define MAX(a, b) PICK(a, b, >, __COUNTER__)
#define PICK(a, b, op, n) PICK_NUMBERED(a, b, op, n) /* expands __COUNTER__ */
#define PICK_NUMBERED(a, b, op, n)                                  \
	__extension__({                                             \
		__typeof__(a) _first_##n = (a);                     \
		__typeof__(b) _other_##n = (b);                     \
		_first_##n op _other_##n ? _first_##n : _other_##n; \
	})
/* @lo must not exceed @hi; all of one type. */
#define CLAMP(v, lo, hi) MAX(MIN(v, hi), lo)

#define STRV_EQ(a, b) (strcmp((a), (b)) == 0)
