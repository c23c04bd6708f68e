// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/schema.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sim/scenario/errors.h"

/* The entry being read, and which of the keys that make a fault it had. */
struct fault_entry {
	struct fault fault;
	uint32_t kinds;
};

static int set_kind(struct fault_entry *entry, enum fault_kind kind)
{
	entry->fault.kind = kind;
	entry->kinds |= UINT32_C(1) << kind;
	return 0;
}

static int parse_error(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	const char *text = schema_scalar(schema, node);

	if (!text)
		return -EINVAL;
	if (error_by_name(text, &entry->fault.error) < 0)
		return schema_fail(
			schema, node,
			"\"%.40s\" is no error of NVML: write NO_PERMISSION, GPU_IS_LOST or the like", text);
	return set_kind(entry, FAULT_ERROR);
}

static int parse_hang(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	const char *text = schema_scalar(schema, node);
	int r = 0;

	if (!text)
		return -EINVAL;
	if (STRV_EQ(text, "forever"))
		entry->fault.hang_ms = FAULT_HANG_FOREVER;
	else if (STRV_EQ(text, "while"))
		entry->fault.hang_ms = FAULT_HANG_WHILE;
	else
		r = schema_duration_ms(schema, node, &entry->fault.hang_ms, sizeof(entry->fault.hang_ms));
	return r < 0 ? r : set_kind(entry, FAULT_HANG);
}

/* default, or the number itself */
static int parse_sentinel(struct schema *schema, const struct yaml_node *node, void *dst,
			  _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	int r = 0;

	if (node->kind != YAML_SCALAR_N || !STRV_EQ(node->scalar, "default")) {
		r = schema_u64(schema, node, &entry->fault.value, sizeof(entry->fault.value));
		entry->fault.value_given = true;
	}
	return r < 0 ? r : set_kind(entry, FAULT_SENTINEL);
}

static int parse_wrap(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	int r = schema_u32(schema, node, &entry->fault.size, sizeof(entry->fault.size));

	if (r < 0)
		return r;
	if (entry->fault.size < 1 || entry->fault.size > 63)
		return schema_fail(schema, node, "wrap is the number of bits that stay, 1 to 63");
	return set_kind(entry, FAULT_WRAP);
}

static int parse_stride(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	int r = schema_u32(schema, node, &entry->fault.size, sizeof(entry->fault.size));

	if (r < 0)
		return r;
	if (entry->fault.size != 24 && entry->fault.size != 32)
		return schema_fail(schema, node, "a record of a process list has 24 or 32 bytes");
	return set_kind(entry, FAULT_STRIDE);
}

/* crash, namespaced, lost, removed, unloaded: true */
static int parse_flag(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;
	bool yes;
	int r = schema_bool(schema, node, &yes, sizeof(yes));

	if (r < 0)
		return r;
	for (enum fault_kind kind = 0; kind < FAULT_KIND_COUNT; kind++) {
		if (yes && STRV_EQ(fault_kind_names[kind], node->key))
			set_kind(entry, kind);
	}
	return 0;
}

static int parse_since(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	static const char *const names[] = { [FAULT_SINCE_BOOT] = "boot", [FAULT_SINCE_LOAD] = "load" };
	int choice = schema_choice(schema, node, names, ARRAY_SIZE(names));
	enum fault_since since = (enum fault_since)choice;

	if (choice < 0)
		return choice;
	memcpy(dst, &since, size);
	return 0;
}

static int parse_fields(struct schema *schema, const struct yaml_node *node, void *dst, _unused_ size_t size)
{
	struct fault_entry *entry = dst;

	if (node->kind != YAML_LIST)
		return schema_fail(schema, node, "fields is a list of field ids, such as [138, 139]");
	for (const struct yaml_node *child = node->children; child; child = child->next) {
		uint32_t id;
		int r = schema_u32(schema, child, &id, sizeof(id));

		if (r < 0)
			return r;
		if (entry->fault.field_count == FAULT_FIELDS || id > UINT16_MAX)
			return schema_fail(schema, child, "at most %d fields, and ids up to %d", FAULT_FIELDS,
					   UINT16_MAX);
		entry->fault.fields[entry->fault.field_count++] = (uint16_t)id;
	}
	return 0;
}

#define KEY(member, name, parse) SCHEMA_KEY(struct fault_entry, fault.member, name, parse)

static const struct schema_key fault_keys[] = {
	{ "error", parse_error, 0, 0 },
	{ "hang", parse_hang, 0, 0 },
	{ "crash", parse_flag, 0, 0 },
	{ "sentinel", parse_sentinel, 0, 0 },
	{ "wrap", parse_wrap, 0, 0 },
	{ "stride", parse_stride, 0, 0 },
	{ "namespaced", parse_flag, 0, 0 },
	{ "lost", parse_flag, 0, 0 },
	{ "removed", parse_flag, 0, 0 },
	{ "unloaded", parse_flag, 0, 0 },
	KEY(gpus, "gpus", schema_gpus),
	KEY(functions, "functions", schema_globs),
	{ "fields", parse_fields, 0, 0 },
	KEY(since, "since", parse_since),
	KEY(window.at_ms, "at", schema_duration_ms),
	KEY(window.length_ms, "for", schema_duration_ms),
	KEY(window.every_ms, "every", schema_duration_ms),
};

int scenario_parse_fault(struct schema *schema, const struct yaml_node *node, struct fault *ret_fault)
{
	struct fault_entry entry = { .fault.window.length_ms = -1 };
	int r;

	/*
	 * In a control file times count from when it was read, since its author does not know the time of
	 * boot.
	 */
	if (!schema->scenario)
		entry.fault.since = FAULT_SINCE_LOAD;
	r = schema_map(schema, node, fault_keys, ARRAY_SIZE(fault_keys), &entry);
	if (r < 0)
		return r;
	if (__builtin_popcount(entry.kinds) != 1)
		return schema_fail(schema, node,
				   "a fault is exactly one of: error, hang, crash, sentinel, wrap, stride, "
				   "namespaced, lost, removed, unloaded");
	*ret_fault = entry.fault;
	return 0;
}
