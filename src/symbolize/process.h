// SPDX-License-Identifier: Apache-2.0
/* What lies where in a process (process.c, areas.c), and the handles that its variables hold (held.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"
#include "base/process_id.h"
#include "symbolize/file.h"
#include "symbolize/symbolize.h"

enum {
	PROCESSES = 4096, /* whose mappings are kept */
	AREAS_MAX = 65536, /* of a process */
	MAPPED_MAX = 4096, /* of its files, about */
};

struct held {
	uint64_t value;
	uint32_t stub;
};

struct mapped {
	uint64_t dev, ino;
	uint64_t start, end; /* of an executable area: to open it */
	char *path;
	bool executable;
	bool looked; /* whether it could be opened is known */
	struct file *file; /* or NULL */
};

struct area {
	uint64_t start, end, offset;
	uint32_t mapped;
	bool executable;
	int64_t held_ns; /* when held was read */
	struct held *held; /* handles that variables of the file have here, by value */
	uint32_t held_n;
};

struct process {
	struct process_id id;
	uint64_t incarnation;
	int64_t read_ns; /* when its maps were read last; 0: never */
	int64_t looked_ns; /* ... unasked */
	bool looked; /* ... at all, or is about to be */
	uint64_t made; /* order */
	bool sealed; /* it has become another program since */
	bool gone;
	struct mapped *mapped;
	uint32_t mapped_n;
	struct area *areas; /* by address */
	uint32_t areas_n;
	uint64_t areas_left_out;
	uint64_t used;
	uint64_t bytes;
};

/* Its mappings, not older than @since_ns unless it is gone. -ESRCH: gone, and nothing was known. */
int process_look(struct symbolizer *symbolizer, const struct symbolizer_question *question, int64_t since_ns,
		 struct process **ret_process);
int process_add(struct symbolizer *symbolizer, struct process_id id, uint64_t incarnation,
		struct process **ret_process);
void process_remove(struct symbolizer *symbolizer, struct process *process);
/* Its areas are those of @fresh from now on. */
void process_take(struct symbolizer *symbolizer, struct process *process, struct process *fresh);
/* While it lives: which of its files have device code. */
void process_look_at_files(struct symbolizer *symbolizer, struct process *process);
/*
 * Areas and files, no more, of a process as it is now; @pending: and as it will be then, or NULL. Takes no
 * lock, changes nothing.
 */
int areas_read(const char *root, pid_t pid, const struct symbolizer_mapping *pending,
	       struct process *ret_process);
void areas_done(struct process *process);
/* Of its files by mapped_key(). UINT32_MAX: none */
uint32_t mapped_at(const struct process *process, const struct hashmap *index, uint64_t dev, uint64_t ino);
/* all of them are looked at */
uint32_t mapped_find(const struct process *process, uint64_t dev, uint64_t ino);
uint64_t mapped_key(uint64_t dev, uint64_t ino);
void process_drop(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void processes_done(struct symbolizer *symbolizer);
/* No mapping refers to @file any more. */
void processes_drop_file(struct symbolizer *symbolizer, const struct file *file);
struct area *process_area(struct process *process, uint64_t address);
/* The file of a mapping, or NULL where it cannot be read. */
struct file *mapped_file(struct symbolizer *symbolizer, struct process *process, struct mapped *mapped);
struct place mapped_place(const struct process *process, const struct mapped *mapped);
/* From file offset to address as linked, by what is mapped there executable. -ENOENT. */
int file_linked(const struct file *file, uint64_t offset, uint64_t *ret_address);
/* What must be added to addresses of the file as linked, in this area. -ENOENT. */
int area_bias(const struct area *area, const struct file *file, uint64_t *ret_bias);
/* What it takes has changed. */
void process_weigh(struct symbolizer *symbolizer, struct process *process);
/* Up to @n bytes of a process; short where it has no more. -errno */
ssize_t process_peek(pid_t pid, uint64_t address, void *buf, size_t n);

/* held.c */

/* The stub whose variable has @handle in this area. -ENOENT: none; -ENOTUNIQ: more than one kernel's. */
int area_handle(struct symbolizer *symbolizer, struct process *process, struct area *area,
		const struct stub_table *stubs, int64_t since_ns, uint64_t handle,
		const struct stub_entry **ret_entry);
