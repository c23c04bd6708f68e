// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/yaml.h"
#include "sim/scenario/scenario.h"

/*
 * Reading a YAML map into a struct by a table: each key has a parser, which writes to its member. Unknown
 * keys are errors, and every error names file, line and remedy.
 */
struct schema {
	const char *file;
	struct scenario_error *err;
	struct scenario *scenario; /* NULL while reading a control file */
};

struct schema_key {
	const char *name;
	int (*parse)(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
	size_t offset, size;
};

#define SCHEMA_KEY(type, member, name, parse)                                       \
	{                                                                           \
		name, parse, offsetof(type, member), sizeof(((type *)NULL)->member) \
	}

/* Gives -EINVAL, for `return schema_fail(...)`. */
int schema_fail(struct schema *schema, const struct yaml_node *node, const char *fmt, ...) _printf_(3, 4);

/* Fills the struct at `base` from a map. */
int schema_map(struct schema *schema, const struct yaml_node *node, const struct schema_key *keys,
	       size_t count, void *base);

/*
 * For each entry of a list, at most `max`; the parser may use one entry for several of what it counts
 * itself.
 */
int schema_list(struct schema *schema, const struct yaml_node *node,
		int (*entry)(struct schema *schema, const struct yaml_node *node));

/* The text of a scalar that is not empty; NULL after schema_fail(). */
const char *schema_scalar(struct schema *schema, const struct yaml_node *node);

/* One of `names`; its index, or -EINVAL after schema_fail(). Entries may be NULL. */
int schema_choice(struct schema *schema, const struct yaml_node *node, const char *const *names,
		  size_t count);

/*
 * Parsers, by what they write to dst:
 *
 *	text		char[]
 *	u32, i32, u64	uint32_t, int32_t, uint64_t
 *	bool		bool
 *	duration_ms	int64_t, of "5s"
 *	mib, mw		uint32_t, of "40GiB" and "700W"
 *	gpus		uint32_t, a bit for each GPU
 *	globs		struct name_globs
 *	curve_number	struct curve
 *	curve_mib	struct curve, in MiB
 */
int schema_text(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_u32(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_i32(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_u64(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_bool(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_duration_ms(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_mib(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_mw(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_gpus(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_globs(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_curve_number(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);
int schema_curve_mib(struct schema *schema, const struct yaml_node *node, void *dst, size_t size);

/* Lists of scenarios, one parser for an entry of each. */
int scenario_parse_gpu(struct schema *schema, const struct yaml_node *node);
int scenario_parse_process(struct schema *schema, const struct yaml_node *node);
int scenario_parse_counter(struct schema *schema, const struct yaml_node *node);
int scenario_parse_xid(struct schema *schema, const struct yaml_node *node);
int scenario_parse_reason(struct schema *schema, const struct yaml_node *node);
int scenario_parse_fault(struct schema *schema, const struct yaml_node *node, struct fault *ret_fault);
