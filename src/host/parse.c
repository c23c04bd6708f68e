// SPDX-License-Identifier: Apache-2.0
#include "host/parse.h"

#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* The text between the brackets of a row. */
#define MEMBERS(...) __VA_ARGS__

const struct host_column host_columns[HOST_METRICS] = {
#define HOST_METRIC(id_, where_, ...) [HOST_##id_] = { MEMBERS where_ },
#include "model/metrics.def"
};

/* Fields behind a device's name, by row. */
static const unsigned disk_fields[] = {
#define DISK_METRIC(id_, field_, ...) [DISK_##id_] = (field_),
#include "model/metrics.def"
};
static const unsigned interface_fields[] = {
#define INTERFACE_METRIC(id_, field_, ...) [INTERFACE_##id_] = (field_),
#include "model/metrics.def"
};

static const char *const no_disks[] = { "loop", "ram", "zram", "fd", "sr" };
/* Those of Calico and Cilium, beside what the kernel and Docker call them. */
static const char *const no_interfaces[] = { "veth", "cali", "lxc" };

/* ---- lines and fields ---- */

/* What is left after the last line end is a line, too. False: there is none. */
static bool next_line(struct cursor *text, struct cursor *ret_line)
{
	if (cursor_eof(text))
		return false;
	if (cursor_until(text, '\n', ret_line) < 0) {
		*ret_line = *text;
		text->p = text->end;
	}
	return true;
}

static bool next_field(struct cursor *line, struct cursor *ret_field)
{
	cursor_skip_space(line);
	ret_field->p = line->p;
	while (!cursor_eof(line) && *line->p != ' ' && *line->p != '\t')
		line->p++;
	ret_field->end = line->p;
	return !cursor_eof(ret_field);
}

/* 12, 0.52, or total=12. */
static bool parse_number(struct cursor field, double *ret_value)
{
	struct cursor name;
	uint64_t whole, part = 0;
	double parts = 1;

	cursor_until(&field, '=', &name);
	if (cursor_u64(&field, &whole) < 0)
		return false;
	if (cursor_literal(&field, ".")) {
		const char *from = field.p;

		if (cursor_u64(&field, &part) < 0)
			return false;
		for (; from < field.p; from++)
			parts *= 10;
	}
	*ret_value = parts > 1 ? (double)whole + (double)part / parts : (double)whole;
	return cursor_eof(&field);
}

static uint8_t parse_field(struct cursor line, unsigned n, double *ret_value)
{
	struct cursor field = { 0 };

	for (unsigned i = 0; i < n; i++)
		if (!next_field(&line, &field))
			return PRESENCE_UNSUPPORTED;
	return parse_number(field, ret_value) ? PRESENCE_PRESENT : PRESENCE_FAILED;
}

/* ---- the machine ---- */

/* Moves behind the key, and the colon that may follow it. */
static bool line_has_key(struct cursor *line, const char *key)
{
	struct cursor field;

	if (!key)
		return true;
	if (!next_field(line, &field))
		return false;
	if (field.end[-1] == ':')
		field.end--;
	return cursor_equals(&field, key);
}

static uint8_t parse_line(struct cursor text, const char *key, unsigned field, double *ret_value)
{
	struct cursor line;

	while (next_line(&text, &line))
		if (line_has_key(&line, key))
			return parse_field(line, field, ret_value);
	return PRESENCE_UNSUPPORTED;
}

uint8_t host_parse(struct cursor text, const struct host_column *column, double *ret_value)
{
	double less = 0;
	uint8_t p = parse_line(text, column->key, column->field, ret_value);

	if (presence_is(p) && column->less)
		p = parse_line(text, column->less, column->field, &less);
	if (!presence_is(p))
		return p;
	*ret_value -= less;
	return *ret_value < 0 ? PRESENCE_FAILED : p;
}

/* ---- lists ---- */

/* What is no name of a device is none of ours. */
static bool device_name(const struct cursor *token, char name[static HOST_DEVICE_NAME])
{
	size_t n = cursor_left(token);

	if (n == 0 || n >= HOST_DEVICE_NAME || memchr(token->p, '\0', n))
		return false;
	memcpy(name, token->p, n);
	name[n] = '\0';
	return true;
}

/* "loop12", but not "loops" */
static bool is_one_of(const char *name, const char *const *kinds, size_t n, bool numbered)
{
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(kinds[i]);

		if (strncmp(name, kinds[i], length) == 0 &&
		    (!numbered || (name[length] >= '0' && name[length] <= '9')))
			return true;
	}
	return false;
}

/* False: there is no room, or one of the name is there already. */
static bool keep_device(struct host_devices *devices, const char *name, struct cursor fields,
			const unsigned *numbers, unsigned n)
{
	struct host_device *device = &devices->list[devices->n];

	if (devices->n == HOST_DEVICES_MAX)
		return false;
	*device = (struct host_device){ 0 };
	memcpy(device->name, name, strlen(name) + 1);
	utf8_sanitize(device->name);
	for (uint32_t i = 0; i < devices->n; i++)
		if (STRV_EQ(devices->list[i].name, device->name))
			return false;
	for (unsigned i = 0; i < n; i++)
		device->p[i] = parse_field(fields, numbers[i], &device->v[i]);
	devices->n++;
	return true;
}

uint32_t host_parse_disks(struct cursor text, host_is_disk_fn *is_disk, void *userdata,
			  struct host_devices *ret_devices)
{
	char name[HOST_DEVICE_NAME];
	struct cursor line, token;
	uint32_t left_out = 0;

	ret_devices->n = 0;
	while (next_line(&text, &line)) {
		/* Major and minor number, name. */
		if (!next_field(&line, &token) || !next_field(&line, &token) || !next_field(&line, &token) ||
		    !device_name(&token, name) || is_one_of(name, no_disks, ARRAY_SIZE(no_disks), true) ||
		    !is_disk(name, userdata))
			continue;
		left_out += !keep_device(ret_devices, name, line, disk_fields, ARRAY_SIZE(disk_fields));
	}
	return left_out;
}

uint32_t host_parse_interfaces(struct cursor text, struct host_devices *ret_devices)
{
	char name[HOST_DEVICE_NAME];
	struct cursor line, token;
	uint32_t left_out = 0;

	ret_devices->n = 0;
	while (next_line(&text, &line)) {
		cursor_skip_space(&line);
		/* Of two lines of heads neither has a colon. */
		if (cursor_until(&line, ':', &token) < 0 || !device_name(&token, name) ||
		    STRV_EQ(name, "lo") || is_one_of(name, no_interfaces, ARRAY_SIZE(no_interfaces), false))
			continue;
		left_out +=
			!keep_device(ret_devices, name, line, interface_fields, ARRAY_SIZE(interface_fields));
	}
	return left_out;
}
