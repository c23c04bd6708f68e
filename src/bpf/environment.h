// SPDX-License-Identifier: Apache-2.0
/*
 * A process's environment as it is now, found in its memory in the way of its dynamic linker:
 *
 *   auxiliary vector ── AT_PHDR ──> program headers ── PT_DYNAMIC, DT_DEBUG ──> list of loaded objects
 *   each object ── DT_GNU_HASH ──> its symbol `environ`; the first object that defines it has the variable
 *
 * /proc/PID/environ has only what the process was started with: setenv() and putenv() change another list.
 *
 * Compiled for the kernel side, which reads the calling process, and for user space (proc/environment.c),
 * which reads another one, and defines for it, before it includes this header:
 *
 *   ENVIRON_FUNCTION                        static
 *   environ_read(pid, to, n, from)          reads the process's memory; true: it could be read
 *   environ_read_text(pid, to, n, from)     reads up to a NUL, at most @n bytes with it
 *
 * All that is read is the process's own to choose, so each list has a bound. Layouts: the ELF specification,
 * glibc's <link.h> (struct r_debug, struct link_map; musl has the same), and the GNU hash table as binutils
 * writes it. All functions return addresses; 0: none.
 */
#pragma once

#include <linux/auxvec.h>
#include <linux/elf.h>
#include <linux/types.h>
#include <stdbool.h>

#include "bpf/event.h"

#ifdef __bpf__
#include "bpf/machine.h"

/*
 * Global, so that the kernel verifies it once and not for each of its callers; weak, so that the compiler
 * does not conclude from it which arguments need not be set.
 */
#define ENVIRON_FUNCTION __weak __noinline
#define environ_read(pid, to, n, from) (((void)(pid), bpf_probe_read_user((to), (n), (void *)(from))) == 0)
#define environ_read_text(pid, to, n, from) \
	(((void)(pid), bpf_probe_read_user_str((to), (n), (void *)(from))) > 0)
#endif

enum {
	ENVIRON_HEADERS = 32, /* program headers */
	ENVIRON_DYNAMIC = 64, /* entries of a dynamic section */
	ENVIRON_OBJECTS = 256, /* objects that are searched; a C library is among the program's direct ones */
	ENVIRON_CHAIN = 64, /* symbols of one bucket */
	ENVIRON_CHUNK = 64, /* variables that one call looks at */
	ENVIRON_CHUNKS = 128,
	ENVIRON_DT_GNU_HASH = 0x6ffffef5,
	ENVIRON_HASH = 0x6ba3dda6, /* of "environ": h = 5381, then h * 33 + each character */
	ENVIRON_FILTER_WORD = 8, /* bytes of a word of the Bloom filter */
};

/* Instead of the address of a value. No value lies there. */
enum { ENVIRON_UNSET, ENVIRON_UNREAD, ENVIRON_GOES_ON };

struct environ_link_map {
	__u64 bias, name, dynamic, next;
};

/* The entry with this tag. Addresses in it are absolute with glibc, and relative to @bias with musl. */
ENVIRON_FUNCTION __u64 environ_dynamic(__u32 pid, __u64 dynamic, __u64 tag, __u64 bias)
{
	__u64 entry[2];

	for (__u32 i = 0; i < ENVIRON_DYNAMIC; i++) {
		if (!environ_read(pid, entry, sizeof(entry), dynamic + i * sizeof(entry)) ||
		    entry[0] == DT_NULL)
			return 0;
		if (entry[0] == tag)
			return entry[1] < bias ? entry[1] + bias : entry[1];
	}
	return 0;
}

/* The dynamic section of the object with these program headers; @bias of one whose headers do not tell it. */
ENVIRON_FUNCTION __u64 environ_section(__u32 pid, __u64 headers, __u64 headers_n, __u64 bias)
{
	__u64 dynamic = 0;
	Elf64_Phdr header;

	for (__u32 i = 0; i < ENVIRON_HEADERS && i < headers_n; i++) {
		if (!environ_read(pid, &header, sizeof(header), headers + i * sizeof(header)))
			return 0;
		if (header.p_type == PT_PHDR)
			bias = headers - header.p_vaddr;
		else if (header.p_type == PT_DYNAMIC)
			dynamic = header.p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

/* Texts are compared as words, of little-endian machines: constants need no section of their own. */
#define ENVIRON_WORD(a, b, c, d, e, f, g, h)                                                     \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Whether the symbol is a defined `environ`; *ret_value is of its table. */
static __inline__ bool environ_symbol(__u32 pid, __u64 symbol, __u64 strings, __u64 *ret_value)
{
	__u64 name = 0;
	Elf64_Sym read;

	if (!environ_read(pid, &read, sizeof(read), symbol) || read.st_shndx == SHN_UNDEF ||
	    !environ_read(pid, &name, sizeof(name), strings + read.st_name))
		return false;
	*ret_value = read.st_value;
	return name == ENVIRON_WORD('e', 'n', 'v', 'i', 'r', 'o', 'n', 0);
}

/* The value of `environ` in a symbol table, found with its hash table. */
ENVIRON_FUNCTION __u64 environ_hashed(__u32 pid, __u64 hash, __u64 symbols, __u64 strings)
{
	struct {
		__u32 buckets, first, filter, shift;
	} head;
	__u32 symbol = 0, found = 0;
	__u64 buckets, chain, value = 0;

	if (!environ_read(pid, &head, sizeof(head), hash) || head.buckets == 0)
		return 0;
	buckets = hash + sizeof(head) + (__u64)head.filter * ENVIRON_FILTER_WORD;
	chain = buckets + (__u64)head.buckets * sizeof(symbol);
	if (!environ_read(pid, &symbol, sizeof(symbol),
			  buckets + (__u64)((__u32)ENVIRON_HASH % head.buckets) * sizeof(symbol)) ||
	    symbol < head.first)
		return 0;
	for (__u32 i = 0; i < ENVIRON_CHAIN; i++) {
		__u64 at = (__u64)symbol + i;

		if (!environ_read(pid, &found, sizeof(found), chain + (at - head.first) * sizeof(found)))
			return 0;
		if ((found | 1) == ((__u32)ENVIRON_HASH | 1) &&
		    environ_symbol(pid, symbols + at * sizeof(Elf64_Sym), strings, &value))
			return value;
		if (found & 1)
			return 0; /* the last one of the bucket */
	}
	return 0;
}

/* `environ` of the object that is loaded at @bias, whose dynamic section is @dynamic. */
ENVIRON_FUNCTION __u64 environ_in(__u32 pid, __u64 bias, __u64 dynamic)
{
	__u64 hash = environ_dynamic(pid, dynamic, ENVIRON_DT_GNU_HASH, bias);
	__u64 symbols = environ_dynamic(pid, dynamic, DT_SYMTAB, bias);
	__u64 strings = environ_dynamic(pid, dynamic, DT_STRTAB, bias);
	__u64 value = hash && symbols && strings ? environ_hashed(pid, hash, symbols, strings) : 0;

	return value ? value + bias : 0;
}

/* The variable `environ` of the program with these program headers. */
ENVIRON_FUNCTION __u64 environ_find(__u32 pid, __u64 headers, __u64 headers_n)
{
	__u64 section = environ_section(pid, headers, headers_n, 0), next = 0, variable;
	__u64 debug = section ? environ_dynamic(pid, section, DT_DEBUG, 0) : 0;
	struct environ_link_map object;

	/* struct r_debug: a version, then the first object. */
	if (!debug || !environ_read(pid, &next, sizeof(next), debug + sizeof(next)))
		return 0;
	for (__u32 i = 0; i < ENVIRON_OBJECTS && next; i++) {
		if (!environ_read(pid, &object, sizeof(object), next))
			return 0;
		variable = environ_in(pid, object.bias, object.dynamic);
		if (variable)
			return variable;
		next = object.next;
	}
	return 0;
}

/* Of the variable at @text: the address of its value, if it is @which (enum trace_variable). */
ENVIRON_FUNCTION __u64 environ_match(__u32 pid, __u64 text, __u32 which)
{
	__u64 read[3] = { 0, 0, 0 };

	if (!environ_read_text(pid, (char *)read, sizeof(read), text))
		return ENVIRON_UNREAD;
	if (which == TRACE_VARIABLE_VISIBLE)
		return read[0] == ENVIRON_WORD('C', 'U', 'D', 'A', '_', 'V', 'I', 'S') &&
				       read[1] == ENVIRON_WORD('I', 'B', 'L', 'E', '_', 'D', 'E', 'V') &&
				       read[2] << 24 == ENVIRON_WORD(0, 0, 0, 'I', 'C', 'E', 'S', '=') ?
			       text + sizeof("CUDA_VISIBLE_DEVICES=") - 1 :
			       ENVIRON_UNSET;
	return read[0] == ENVIRON_WORD('C', 'U', 'D', 'A', '_', 'D', 'E', 'V') &&
			       read[1] == ENVIRON_WORD('I', 'C', 'E', '_', 'O', 'R', 'D', 'E') &&
			       read[2] << 48 == ENVIRON_WORD(0, 0, 0, 0, 0, 0, 'R', '=') ?
		       text + sizeof("CUDA_DEVICE_ORDER=") - 1 :
		       ENVIRON_UNSET;
}

/* As environ_get(), of ENVIRON_CHUNK addresses at @list; ENVIRON_GOES_ON: it is not among them. */
ENVIRON_FUNCTION __u64 environ_chunk(__u32 pid, __u64 list, __u32 which)
{
	__u64 text, found;

	for (__u32 i = 0; i < ENVIRON_CHUNK; i++) {
		if (!environ_read(pid, &text, sizeof(text), list + i * sizeof(text)))
			return ENVIRON_UNREAD;
		if (!text)
			return ENVIRON_UNSET;
		found = environ_match(pid, text, which);
		if (found != ENVIRON_UNSET)
			return found;
	}
	return ENVIRON_GOES_ON;
}

/*
 * The address of the value that getenv() finds, @variable is `environ`. ENVIRON_UNSET: there is none;
 * ENVIRON_UNREAD: not known, since memory could not be read or there are more variables than are looked at.
 */
ENVIRON_FUNCTION __u64 environ_get(__u32 pid, __u64 variable, __u32 which)
{
	__u64 list, found;

	if (!variable || !environ_read(pid, &list, sizeof(list), variable))
		return ENVIRON_UNREAD;
	if (!list)
		return ENVIRON_UNSET; /* clearenv() */
	for (__u32 i = 0; i < ENVIRON_CHUNKS; i++) {
		found = environ_chunk(pid, list + (__u64)i * ENVIRON_CHUNK * sizeof(found), which);
		if (found != ENVIRON_GOES_ON)
			return found;
	}
	return ENVIRON_UNREAD;
}
