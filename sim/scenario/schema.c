// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/schema.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

int schema_fail(struct schema *schema, const struct yaml_node *node, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(schema->err->message, sizeof(schema->err->message), "%.100s:%d: %s", schema->file,
		 node->line, text);
	return -EINVAL;
}

static int unknown_key(struct schema *schema, const struct yaml_node *node, const struct schema_key *keys,
		       size_t count)
{
	char known[320] = "";
	size_t used = 0;

	for (size_t i = 0; i < count && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
					 keys[i].name);
	return schema_fail(schema, node, "unknown key \"%.40s\"; known here: %s%s", node->key, known,
			   used >= sizeof(known) ? "..." : "");
}

int schema_map(struct schema *schema, const struct yaml_node *node, const struct schema_key *keys,
	       size_t count, void *base)
{
	if (node->kind != YAML_MAP)
		return schema_fail(schema, node, "a map is expected here: write \"key: value\" lines");
	for (const struct yaml_node *child = node->children; child; child = child->next) {
		const struct schema_key *key = NULL;
		int r;

		for (size_t i = 0; i < count && !key; i++)
			key = STRV_EQ(keys[i].name, child->key) ? &keys[i] : NULL;
		if (!key)
			return unknown_key(schema, child, keys, count);
		r = key->parse(schema, child, (char *)base + key->offset, key->size);
		if (r < 0)
			return r;
	}
	return 0;
}

int schema_list(struct schema *schema, const struct yaml_node *node,
		int (*entry)(struct schema *schema, const struct yaml_node *node))
{
	if (node->kind != YAML_LIST)
		return schema_fail(schema, node, "\"%.40s\" is a list: write \"- \" before each entry",
				   node->key);
	for (const struct yaml_node *child = node->children; child; child = child->next) {
		int r = entry(schema, child);

		if (r < 0)
			return r;
	}
	return 0;
}

const char *schema_scalar(struct schema *schema, const struct yaml_node *node)
{
	if (node->kind != YAML_SCALAR_N || !*node->scalar) {
		schema_fail(schema, node, "a single value is expected here");
		return NULL;
	}
	return node->scalar;
}

int schema_choice(struct schema *schema, const struct yaml_node *node, const char *const *names, size_t count)
{
	const char *text = schema_scalar(schema, node);
	char known[320] = "";
	size_t used = 0;

	if (!text)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (names[i] && STRV_EQ(names[i], text))
			return (int)i;
	}
	for (size_t i = 0; i < count && used < sizeof(known); i++) {
		if (names[i])
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 used > 0 ? ", " : "", names[i]);
	}
	return schema_fail(schema, node, "\"%.40s\" is not known; choose one of: %s", text, known);
}

int schema_text(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	if (node->kind != YAML_SCALAR_N)
		return schema_fail(schema, node, "a single value is expected here");
	if (strlen(node->scalar) >= size)
		return schema_fail(schema, node, "text is too long: at most %zu bytes", size - 1);
	memset(dst, 0, size);
	memcpy(dst, node->scalar, strlen(node->scalar));
	return 0;
}

int schema_u64(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const char *text = schema_scalar(schema, node);
	uint64_t value;

	if (!text)
		return -EINVAL;
	if (parse_u64(text, &value) < 0)
		return schema_fail(schema, node, "\"%.40s\" is not a whole number from 0 on", text);
	memcpy(dst, &value, size);
	return 0;
}

int schema_u32(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	uint64_t value;
	uint32_t narrow;
	int r = schema_u64(schema, node, &value, sizeof(value));

	if (r < 0)
		return r;
	if (value > UINT32_MAX)
		return schema_fail(schema, node, "%s is too large: at most 4294967295", node->scalar);
	narrow = (uint32_t)value;
	memcpy(dst, &narrow, size);
	return 0;
}

int schema_i32(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const char *text = schema_scalar(schema, node);
	int64_t value;
	int32_t narrow;

	if (!text)
		return -EINVAL;
	if (parse_i64(text, &value) < 0 || value < INT32_MIN || value > INT32_MAX)
		return schema_fail(schema, node, "\"%.40s\" is not a whole number of 32 bits", text);
	narrow = (int32_t)value;
	memcpy(dst, &narrow, size);
	return 0;
}

int schema_bool(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const char *text = schema_scalar(schema, node);
	bool value;

	if (!text)
		return -EINVAL;
	if (parse_bool(text, &value) < 0)
		return schema_fail(schema, node, "\"%.40s\" is neither true nor false", text);
	memcpy(dst, &value, size);
	return 0;
}

int schema_duration_ms(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	const char *text = schema_scalar(schema, node);
	int64_t ns, ms;

	if (!text)
		return -EINVAL;
	if (parse_duration_ns(text, &ns) < 0 || ns < 0)
		return schema_fail(schema, node, "\"%.40s\" is not a time: write 500ms, 5s, 2m or 1h", text);
	if (ns % (SCENARIO_TICK_MS * NSEC_PER_MSEC) != 0)
		return schema_fail(schema, node, "times are multiples of %d ms", SCENARIO_TICK_MS);
	ms = ns / NSEC_PER_MSEC;
	memcpy(dst, &ms, size);
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* A number with one of the units, in the last unit's terms of factor 1. */
static int parse_with_unit(const char *text, const struct unit *units, size_t count, double *ret_value)
{
	char number[32];
	double value;

	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(text), tail = strlen(units[i].name);

		if (length <= tail || length - tail >= sizeof(number) ||
		    !STRV_EQ(text + length - tail, units[i].name))
			continue;
		memcpy(number, text, length - tail);
		number[length - tail] = '\0';
		if (parse_double(number, &value) < 0 || value < 0)
			return -EINVAL;
		*ret_value = value * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

static int parse_mib(struct schema *schema, const struct yaml_node *node, double *ret_mib)
{
	static const struct unit units[] = { { "GiB", 1024 }, { "MiB", 1 } };
	const char *text = schema_scalar(schema, node);

	if (!text)
		return -EINVAL;
	if (STRV_EQ(text, "0")) {
		*ret_mib = 0;
		return 0;
	}
	if (parse_with_unit(text, units, ARRAY_SIZE(units), ret_mib) < 0 || *ret_mib > INT32_MAX)
		return schema_fail(schema, node,
				   "\"%.40s\" is not an amount of memory: write 512MiB or 40GiB", text);
	return 0;
}

int schema_mib(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	double value;
	uint32_t mib;
	int r = parse_mib(schema, node, &value);

	if (r < 0)
		return r;
	mib = (uint32_t)value;
	memcpy(dst, &mib, size);
	return 0;
}

int schema_mw(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	static const struct unit units[] = { { "kW", 1e6 }, { "mW", 1 }, { "W", 1e3 } };
	const char *text = schema_scalar(schema, node);
	double value;
	uint32_t mw;

	if (!text)
		return -EINVAL;
	if (parse_with_unit(text, units, ARRAY_SIZE(units), &value) < 0 || value > 1e8)
		return schema_fail(schema, node, "\"%.40s\" is not a power: write 700W", text);
	mw = (uint32_t)lround(value);
	memcpy(dst, &mw, size);
	return 0;
}

/* "3" or "0-3" */
static int add_gpus(struct schema *schema, const struct yaml_node *node, uint32_t *mask)
{
	const char *text = schema_scalar(schema, node);
	unsigned first, last;
	char rest;

	if (!text)
		return -EINVAL;
	if (sscanf(text, "%2u-%2u%c", &first, &last, &rest) != 2) {
		if (sscanf(text, "%2u%c", &first, &rest) != 1)
			return schema_fail(schema, node,
					   "\"%.40s\" names no GPU: write all, 3, 0-3 or a list of these",
					   text);
		last = first;
	}
	if (first > last || last >= SCENARIO_MAX_GPUS)
		return schema_fail(schema, node, "GPUs are numbered from 0 to %d", SCENARIO_MAX_GPUS - 1);
	if (schema->scenario && last >= schema->scenario->gpu_count)
		return schema_fail(schema, node,
				   "there is no GPU %u: the scenario has %u, and \"gpus\" stands first", last,
				   schema->scenario->gpu_count);
	for (unsigned i = first; i <= last; i++)
		*mask |= UINT32_C(1) << i;
	return 0;
}

int schema_gpus(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	uint32_t mask = 0;
	int r = 0;

	if (node->kind == YAML_SCALAR_N && STRV_EQ(node->scalar, "all")) {
		mask = UINT32_MAX;
	} else if (node->kind == YAML_LIST) {
		for (const struct yaml_node *child = node->children; child && r == 0; child = child->next)
			r = add_gpus(schema, child, &mask);
	} else {
		r = add_gpus(schema, node, &mask);
	}
	if (r < 0)
		return r;
	memcpy(dst, &mask, size);
	return 0;
}

static int add_glob(struct schema *schema, const struct yaml_node *node, struct name_globs *globs)
{
	if (!schema_scalar(schema, node))
		return -EINVAL;
	if (globs->count == FAULT_GLOBS)
		return schema_fail(schema, node, "more than %d patterns; use wildcards", FAULT_GLOBS);
	return schema_text(schema, node, globs->pattern[globs->count++], sizeof(globs->pattern[0]));
}

int schema_globs(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	struct name_globs globs = { 0 };
	int r = 0;

	if (node->kind == YAML_LIST) {
		for (const struct yaml_node *child = node->children; child && r == 0; child = child->next)
			r = add_glob(schema, child, &globs);
	} else {
		r = add_glob(schema, node, &globs);
	}
	if (r < 0)
		return r;
	memcpy(dst, &globs, size);
	return 0;
}

static int curve_value(struct schema *schema, const struct yaml_node *node, bool mib, float *ret_value)
{
	const char *text = schema_scalar(schema, node);
	double value;
	int r;

	if (!text)
		return -EINVAL;
	if (mib) {
		r = parse_mib(schema, node, &value);
		if (r < 0)
			return r;
	} else if (parse_double(text, &value) < 0 || value < 0 || value > 1e7) {
		return schema_fail(schema, node, "\"%.40s\" is not a number from 0 on", text);
	}
	*ret_value = (float)value;
	return 0;
}

static int curve_range(struct schema *schema, const struct yaml_node *node, bool mib, struct curve *curve)
{
	const struct yaml_node *low = node->children;
	int r;

	if (node->kind != YAML_LIST || !low || !low->next || low->next->next)
		return schema_fail(schema, node, "a curve runs between two values: write %s: [low, high]",
				   node->key);
	r = curve_value(schema, low, mib, &curve->low);
	return r < 0 ? r : curve_value(schema, low->next, mib, &curve->high);
}

/* One key of a curve's map: its shape, or what else there is to say about it. */
static int curve_key(struct schema *schema, const struct yaml_node *node, bool mib, struct curve *curve)
{
	for (enum curve_shape shape = CURVE_SINE; shape < CURVE_SHAPE_COUNT; shape++) {
		if (STRV_EQ(node->key, curve_shape_names[shape])) {
			curve->shape = shape;
			return curve_range(schema, node, mib, curve);
		}
	}
	if (STRV_EQ(node->key, "constant")) {
		int r = curve_value(schema, node, mib, &curve->high);

		curve->low = curve->high;
		return r;
	}
	if (STRV_EQ(node->key, "period"))
		return schema_duration_ms(schema, node, &curve->period_ms, sizeof(curve->period_ms));
	if (STRV_EQ(node->key, "phase"))
		return schema_duration_ms(schema, node, &curve->phase_ms, sizeof(curve->phase_ms));
	if (STRV_EQ(node->key, "duty"))
		return curve_value(schema, node, false, &curve->duty);
	if (STRV_EQ(node->key, "jitter"))
		return curve_value(schema, node, mib, &curve->jitter);
	return schema_fail(
		schema, node,
		"unknown key \"%.40s\"; a curve is constant, sine, square, saw, ramp or noise, with period, "
		"phase, duty, jitter",
		node->key);
}

static int parse_curve(struct schema *schema, const struct yaml_node *node, bool mib, struct curve *ret_curve)
{
	struct curve curve = { .duty = 0.5f, .seed = (uint32_t)node->line };
	int r = 0;

	if (node->kind != YAML_MAP) {
		r = curve_value(schema, node, mib, &curve.high);
		curve.low = curve.high;
	} else {
		for (const struct yaml_node *child = node->children; child && r == 0; child = child->next)
			r = curve_key(schema, child, mib, &curve);
	}
	if (r < 0)
		return r;
	if (curve.shape != CURVE_CONSTANT && curve.period_ms <= 0)
		return schema_fail(schema, node, "a %s needs a period, such as 30s",
				   curve_shape_names[curve.shape]);
	if (curve.low > curve.high || curve.duty > 1)
		return schema_fail(schema, node, "the lower value comes first, and duty is at most 1");
	*ret_curve = curve;
	return 0;
}

int schema_curve_number(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	struct curve curve;
	int r = parse_curve(schema, node, false, &curve);

	if (r == 0)
		memcpy(dst, &curve, size);
	return r;
}

int schema_curve_mib(struct schema *schema, const struct yaml_node *node, void *dst, size_t size)
{
	struct curve curve;
	int r = parse_curve(schema, node, true, &curve);

	if (r == 0)
		memcpy(dst, &curve, size);
	return r;
}
