// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of src/unwind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/user_shares.h"
#include "elf/elf.h"
#include "proc/maps.h"
#include "proc/mounts.h"
#include "unwind/eh_frame.h"
#include "unwind/unwind.h"

/* ---- ranges.c ---- */

/* Parts of an array that are in use, by @first; a part is taken where there is room first. */
struct ranges {
	struct range {
		uint32_t first, n;
	} * used;
	uint32_t used_n, used_cap;
	uint32_t size; /* of the array */
};

/* -ENOBUFS: there is no gap of @n. */
int ranges_take(struct ranges *ranges, uint32_t n, uint32_t *ret_first);
void ranges_give(struct ranges *ranges, uint32_t first);
void ranges_done(struct ranges *ranges);

/* ---- code.c: which parts of a file are code ---- */

enum { FILE_RANGES = 8 };

struct file_code {
	struct elf_range ranges[FILE_RANGES];
	uint32_t n;
};

void file_code_read(struct file_code *code, int fd);
/* What is added to addresses as linked. -ENOENT: the file has no code there. */
int file_code_bias(const struct file_code *code, const struct proc_map *map, uint64_t *ret_bias);
/* Code of no file, which a perf map may name. */
bool is_made_code(const struct proc_map *map);

/* ---- making.c: a file's rules, made in steps ---- */

/* CPU time for a file's rules. */
#define MAKING_CPU_NS (2 * NSEC_PER_SEC)

struct making {
	struct elf_file *elf;
	struct eh_frame frame;
	uint8_t *bytes;
	struct eh_function *functions;
	uint32_t functions_n, functions_cap;
	uint32_t at; /* in the section, then of the functions */
	bool sorted; /* all functions are known */
	int64_t cpu_ns; /* that was used for it */
	struct unwind_rule *rules; /* of this file alone; rule 0: UNWIND_NONE */
	uint32_t rules_n, rules_cap;
	struct hashmap rule_by;
	struct unwind_row *rows;
	uint32_t rows_n, rows_cap;
	uint64_t base, end;
};

/* @fd stays the caller's, and must stay open. -ENOENT: the file has no such section. */
int making_begin(struct making *making, int fd);
/* 1: there is more to do; 0: making->rows are all; -ETIME: they take longer than MAKING_CPU_NS. */
int making_step(struct making *making);
void making_done(struct making *making);
/* Whether the bytes are what compilers fill the space between functions with. */
bool is_padding(uint16_t machine, const uint8_t *code, size_t n);

/* ---- rules.c: rules that all files share ---- */

struct rules {
	struct unwind_rule *rules; /* the kernel side's map */
	struct rule_use {
		uint32_t files; /* that have it; 0: it is free */
		uint32_t user; /* who is charged for it; of a free one: the next, 0: none */
	} * uses;
	uint32_t n; /* from this one on none was used yet */
	uint32_t free; /* the first of a list; 0: none */
	struct hashmap by;
};

/* What users share. */
enum unwind_share {
	UNWIND_SHARE_SPACES,
	UNWIND_SHARE_AREAS,
	UNWIND_SHARE_FILES,
	UNWIND_SHARE_ROWS,
	UNWIND_SHARE_RULES,
};

int rules_init(struct rules *rules, struct unwind_rule *map);
void rules_done(struct rules *rules);
/* -ENOBUFS: there is no room for a new one, or not for one of this user's, if there is a @limit for each. */
int rules_take(struct rules *rules, struct user_shares *shares, uint32_t user, bool limit,
	       const struct unwind_rule *rule, uint32_t *ret_index);
void rules_give(struct rules *rules, struct user_shares *shares, uint32_t index);

/* ---- files.c ---- */

enum file_state {
	FILE_QUEUED,
	FILE_MADE, /* or there is nothing to be made, and @none says why */
};

struct file {
	uint64_t dev, ino;
	uint64_t stamp; /* of a helper: tells it from another one that has its number later */
	char *path; /* of a helper: the last part */
	int fd; /* -1: it is not read */
	enum file_state state;
	uint32_t none; /* enum trace_native_stop */
	uint32_t first, rows;
	uint32_t *rules, rules_n; /* that it has */
	uint64_t base; /* of the rows' addresses, as linked */
	uint32_t users; /* lists of mappings that have it, one that is being read among them */
	bool told; /* an address in it is to be named at the end: it is not given up */
	struct file_code code;
	pid_t made_by; /* a process's own code, and its perf map; 0: a file */
	/* For a helper: a process that has it, that was asked last, that did not have it; 0: none. */
	pid_t mapped_by, asked, failed_by;
	uint32_t tries;
	bool unreachable; /* none of those that have it could be asked */
	uint32_t user; /* who is charged for it */
};

/* A process's list of mappings: one part of the array of areas. */
struct space {
	uint32_t number; /* 0: unused */
	uint32_t tgid;
	uint32_t user;
	uint32_t first, n;
	struct mapping {
		uint32_t file; /* 0: none */
		uint32_t none; /* enum trace_native_stop, of no file */
		uint64_t bias; /* what is added to addresses as linked */
	} * mappings; /* as the areas */
	int64_t retired_ns; /* CLOCK_MONOTONIC; 0: it is in use */
	bool stale; /* to be read again, from @again_ns on */
	int64_t again_ns, wait_ns;
};

struct unwind_remote;

struct unwind {
	struct unwind_maps maps;
	struct unwind_area *areas;
	struct unwind_row *rows;
	struct rules rules;
	struct ranges areas_used, rows_used;
	struct file *files; /* from 1 on */
	uint32_t files_n, files_max;
	struct space *spaces;
	uint32_t spaces_n;
	uint32_t number;
	uint32_t stale_n; /* lists */
	int64_t rest_ns; /* CLOCK_MONOTONIC: no list is read again before */
	uint64_t crowded;
	uint32_t making_of; /* file; 0: none */
	struct making making;
	struct user_shares shares;
	struct unwind_remote *remote; /* NULL: this process reads files itself */
};

/* Whether the user may have @n more. Without a helper all processes are one user's. */
static inline bool unwind_may(const struct unwind *u, uint32_t user, enum unwind_share table, uint32_t n)
{
	return !u->remote || user_shares_have(&u->shares, user, table, n);
}

/* The file of a mapping; 0: there are too many. */
uint32_t file_get(struct unwind *u, const struct proc_map *map, struct mounts_user *mounts, uint32_t user);
/* The same of a helper's words. */
uint32_t file_get_listed(struct unwind *u, const struct file *listed);
/* What names the code that a process has made for itself; 0: nothing does. */
uint32_t made_get(struct unwind *u, struct mounts_user *mounts, uint32_t user);
/* The process is another one now, whose perf map is another file. */
void made_over(struct unwind *u, uint32_t tgid);
void file_done(struct unwind *u, struct file *file);
/* Room for @n rows in the place of those of files that nobody maps. -ENOBUFS. */
int rows_room(struct unwind *u, struct file *file, uint32_t n);
void rows_give(struct unwind *u, struct file *file);
/* @rules[0] is UNWIND_NONE. They are taken, and ret_numbers[i] is what rules[i] is called in rows. */
int file_take_rules(struct unwind *u, struct file *file, const struct unwind_rule *rules, uint32_t n,
		    uint32_t *ret_numbers);
/* Why there are no rows, where there are none. */
void file_is_made(struct file *file, int r);

/* ---- unwind.c ---- */

/* A list while it is read. */
struct listing {
	struct unwind *u;
	uint32_t user;
	struct unwind_area *areas;
	struct mapping *mappings; /* a space has them once it is taken */
	uint32_t n;
	bool made_known;
	uint32_t made; /* what names the process's own code; 0: nothing does */
};

int listing_init(struct listing *listing, struct unwind *u, pid_t pid);
void listing_done(struct listing *listing);
void listing_add(struct listing *listing, uint64_t start, uint64_t end, const struct mapping *mapping);
/* The list is all of the process's: it takes the place of the one before, unless it is the same. */
int space_listed(struct unwind *u, pid_t pid, struct listing *listing);
struct space *space_of(struct unwind *u, uint32_t tgid);
/* The process whose list is to be read again now; 0: none. It is taken from those that are. */
pid_t space_take_due(struct unwind *u, int64_t now_ns);
/* It was read, if it could be. @number: of the list before. */
void space_was_read(struct unwind *u, pid_t pid, uint32_t number, int64_t begin_ns);
/* The rows of @file have been made: every list that has it is told. */
void file_publish(struct unwind *u, uint32_t file);

/* ---- remote.c: what a helper reads in place of this process ---- */

void remote_free(struct unwind_remote *remote);
void remote_want(struct unwind *u, pid_t pid);
void remote_event(struct unwind *u, const struct trace_header *event);
/* Asks for what is to be read next, unless something is asked for already. */
void remote_pump(struct unwind *u);
