// SPDX-License-Identifier: Apache-2.0
/*
 * Mappings of a process (process.c, areas.c), and the handles in its variables (held.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"
#include "base/process_id.h"
#include "symbolize/file.h"
#include "symbolize/symbolize.h"

enum {
	PROCESSES = 4096, /* with stored mappings */
	AREAS_MAX = 65536, /* of a process */
	MAPPED_MAX = 4096, /* of its files, about */
};

struct held {
	uint64_t value;
	uint32_t stub;
};

struct mapped {
	uint64_t dev, ino;
	uint64_t start, end; /* of an executable area, to open the file */
	char *path;
	bool executable;
	bool looked; /* whether it could be opened has been checked */
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
	int64_t read_ns; /* when its maps were last read; 0: never */
	int64_t looked_ns; /* ... unasked */
	bool looked; /* ... at all, or is about to be */
	uint64_t made; /* order of creation */
	bool sealed; /* it has executed another program since */
	bool gone;
	struct mapped *mapped;
	uint32_t mapped_n;
	struct area *areas; /* by address */
	uint32_t areas_n;
	uint64_t areas_left_out;
	uint64_t used;
	uint64_t bytes;
};

/*
 * The process's mappings, not older than @since_ns unless it has ended. -ESRCH: it has ended, and its
 * mappings are unknown.
 */
int process_look(struct symbolizer *symbolizer, const struct symbolizer_question *question, int64_t since_ns,
		 struct process **ret_process);
int process_add(struct symbolizer *symbolizer, struct process_id id, uint64_t incarnation,
		struct process **ret_process);
void process_remove(struct symbolizer *symbolizer, struct process *process);
/* Replaces the process's mappings by those of @fresh. */
void process_take(struct symbolizer *symbolizer, struct process *process, struct process *fresh);
/* While it lives: determines which of its files have device code. */
void process_look_at_files(struct symbolizer *symbolizer, struct process *process);
/*
 * Areas and files, no more, of a process as it is now; @pending: and as it will be then, or NULL. Takes no
 * lock, changes nothing.
 */
int areas_read(const char *root, pid_t pid, const struct symbolizer_mapping *pending,
	       struct process *ret_process);
void areas_done(struct process *process);
/* Index of a file, by mapped_key(). UINT32_MAX: none */
uint32_t mapped_at(const struct process *process, const struct hashmap *index, uint64_t dev, uint64_t ino);
/* the same by linear search */
uint32_t mapped_find(const struct process *process, uint64_t dev, uint64_t ino);
uint64_t mapped_key(uint64_t dev, uint64_t ino);
void process_drop(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
void processes_done(struct symbolizer *symbolizer);
/* Removes all references to @file. */
void processes_drop_file(struct symbolizer *symbolizer, const struct file *file);
struct area *process_area(struct process *process, uint64_t address);
/* The file of a mapping, or NULL if it cannot be read. */
struct file *mapped_file(struct symbolizer *symbolizer, struct process *process, struct mapped *mapped);
struct place mapped_place(const struct process *process, const struct mapped *mapped);
/* Converts a file offset to the address as linked, by the executable mappings. -ENOENT. */
int file_linked(const struct file *file, uint64_t offset, uint64_t *ret_address);
/* The difference between addresses in this area and addresses as linked. -ENOENT. */
int area_bias(const struct area *area, const struct file *file, uint64_t *ret_bias);
/* To be called after its memory use has changed. */
void process_weigh(struct symbolizer *symbolizer, struct process *process);
/* Reads up to @n bytes of a process; fewer at the end of mapped memory. -errno */
ssize_t process_peek(pid_t pid, uint64_t address, void *buf, size_t n);

/* held.c */

/* The stub whose variable contains @handle in this area. -ENOENT: none; -ENOTUNIQ: several kernels. */
int area_handle(struct symbolizer *symbolizer, struct process *process, struct area *area,
		const struct stub_table *stubs, int64_t since_ns, uint64_t handle,
		const struct stub_entry **ret_entry);
