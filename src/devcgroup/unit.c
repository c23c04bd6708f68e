// SPDX-License-Identifier: Apache-2.0
/*
 * systemd keeps DeviceAllow= of a unit in a drop-in of its own: /run/systemd/system.control/UNIT.d, and
 * for transient units, a container's scope is one, /run/systemd/transient/UNIT.d. SetUnitProperties
 * writes it, applies it at once, and a daemon-reload reads it again: org.freedesktop.systemd1(5).
 * "char-NAME" is sought in /proc/devices whenever it is applied: systemd.resource-control(5).
 */
#include "devcgroup/devcgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <systemd/sd-bus.h>

#define MANAGER "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define SYSTEMD "org.freedesktop.systemd1"
#define PROPERTY "DeviceAllow"
enum { CALL_US = 10 * 1000 * 1000, ALLOWED_MAX = 256 };

struct allowed {
	char device[PATH_MAX], access[8];
};

struct unit {
	const char *name, *interface;
	sd_bus *bus;
	char *path; /* of its object */
	struct allowed *list; /* DeviceAllow= as it is */
	unsigned n;
	bool restricts; /* some device is denied */
};

static const struct {
	const char *ending, *interface, *section;
} types[] = {
	{ ".service", SYSTEMD ".Service", "Service" },
	{ ".scope", SYSTEMD ".Scope", "Scope" },
	{ ".slice", SYSTEMD ".Slice", "Slice" },
};

static int type_of(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (n > strlen(types[i].ending) &&
		    STRV_EQ(name + n - strlen(types[i].ending), types[i].ending))
			return (int)i;
	return -EINVAL;
}

static void unit_done(struct unit *unit)
{
	free(unit->path);
	free(unit->list);
	sd_bus_flush_close_unref(unit->bus);
}

/* ---- reading ---- */

static int take_allowed(struct unit *unit, sd_bus_message *reply)
{
	const char *device, *access;
	int r = sd_bus_message_enter_container(reply, 'a', "(ss)");

	unit->list = calloc(ALLOWED_MAX, sizeof(*unit->list));
	if (!unit->list)
		return -ENOMEM;
	while (r >= 0 && (r = sd_bus_message_read(reply, "(ss)", &device, &access)) > 0) {
		if (unit->n == ALLOWED_MAX || strlen(device) >= sizeof(unit->list[0].device))
			return -E2BIG;
		snprintf(unit->list[unit->n].device, sizeof(unit->list[0].device), "%s", device);
		snprintf(unit->list[unit->n].access, sizeof(unit->list[0].access), "%s", access);
		unit->n++;
	}
	return r;
}

static int unit_read(struct unit *unit)
{
	sd_bus_message *reply = NULL;
	char *policy = NULL;
	const char *path;
	int r = sd_bus_open_system(&unit->bus);

	if (r >= 0)
		r = sd_bus_set_method_call_timeout(unit->bus, CALL_US);
	if (r >= 0)
		r = sd_bus_call_method(unit->bus, MANAGER, "GetUnit", NULL, &reply, "s", unit->name);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &path);
	if (r >= 0)
		r = (unit->path = strdup(path)) ? 0 : -ENOMEM;
	sd_bus_message_unref(reply);
	reply = NULL;
	if (r >= 0)
		r = sd_bus_get_property(unit->bus, SYSTEMD, unit->path, unit->interface, PROPERTY, NULL,
					&reply, "a(ss)");
	if (r >= 0)
		r = take_allowed(unit, reply);
	sd_bus_message_unref(reply);
	if (r >= 0)
		r = sd_bus_get_property_string(unit->bus, SYSTEMD, unit->path, unit->interface,
					       "DevicePolicy", NULL, &policy);
	unit->restricts = unit->n > 0 || (policy && !STRV_EQ(policy, "auto"));
	free(policy);
	return r;
}

static bool is_ours(const struct allowed *allowed)
{
	return STRV_EQ(allowed->device, UNIT_DEVICES) && STRV_EQ(allowed->access, UNIT_ACCESS);
}

/* ---- writing ---- */

/* A property that is an empty list takes all away that was there. */
static int append_list(sd_bus_message *call, const struct allowed *list, unsigned n)
{
	int r = sd_bus_message_open_container(call, 'r', "sv");

	if (r >= 0)
		r = sd_bus_message_append(call, "s", PROPERTY);
	if (r >= 0)
		r = sd_bus_message_open_container(call, 'v', "a(ss)");
	if (r >= 0)
		r = sd_bus_message_open_container(call, 'a', "(ss)");
	for (unsigned i = 0; r >= 0 && i < n; i++)
		r = sd_bus_message_append(call, "(ss)", list[i].device, list[i].access);
	for (unsigned i = 0; r >= 0 && i < 3; i++)
		r = sd_bus_message_close_container(call);
	return r;
}

/* @whole: instead of what is there, else beside it. */
static int set_list(const struct unit *unit, const struct allowed *list, unsigned n, bool whole,
		    sd_bus_error *error)
{
	sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(unit->bus, &call, MANAGER, "SetUnitProperties");

	if (r >= 0) /* until reboot */
		r = sd_bus_message_append(call, "sb", unit->name, 1);
	if (r >= 0)
		r = sd_bus_message_open_container(call, 'a', "(sv)");
	if (r >= 0 && whole)
		r = append_list(call, NULL, 0);
	if (r >= 0 && n > 0)
		r = append_list(call, list, n);
	if (r >= 0)
		r = sd_bus_message_close_container(call);
	if (r >= 0)
		r = sd_bus_call(unit->bus, call, CALL_US, error, NULL);
	sd_bus_message_unref(call);
	return r < 0 ? r : 0;
}

static int add_ours(const struct unit *unit, sd_bus_error *error)
{
	const struct allowed ours = { .device = UNIT_DEVICES, .access = UNIT_ACCESS };

	return set_list(unit, &ours, 1, false, error);
}

static int remove_ours(struct unit *unit, sd_bus_error *error)
{
	unsigned n = 0;

	for (unsigned i = 0; i < unit->n; i++)
		if (!is_ours(&unit->list[i]))
			unit->list[n++] = unit->list[i];
	return set_list(unit, unit->list, n, true, error);
}

/* ---- what is asked for ---- */

static int refused(const struct unit *unit, int r, const char *message, struct devcgroup_why *why)
{
	char drop_in[512];

	if (r == -EACCES || r == -EPERM) {
		devcgroup_because(why, "systemd does not let this user change %s: run as root", unit->name);
		return r;
	}
	if (unit->bus && (unit->path || r == -ENOENT)) {
		devcgroup_because(why, "systemd refuses it for %s: %s", unit->name,
				  message ? message : strerror(-r));
		return r;
	}
	unit_drop_in(unit->name, drop_in, sizeof(drop_in));
	devcgroup_because(
		why,
		"systemd does not answer for %s here (%s): run this on the host, or write there %s and "
		"run systemctl daemon-reload",
		unit->name, message ? message : strerror(-r), drop_in);
	return -EHOSTDOWN;
}

static int change_unit(struct unit *unit, bool undo, struct change *change, struct devcgroup_why *why,
		       sd_bus_error *error)
{
	bool ours = false;
	int r;

	for (unsigned i = 0; i < unit->n; i++)
		ours |= is_ours(&unit->list[i]);
	if (ours != undo)
		return 0;
	if (!undo && !unit->restricts) {
		devcgroup_because(
			why,
			"%s restricts no device (DevicePolicy=auto without DeviceAllow=), so it is not "
			"systemd that denies, and a rule would make it begin: allow the cgroup without "
			"--systemd",
			unit->name);
		return -ENOTSUP;
	}
	r = undo ? remove_ours(unit, error) : add_ours(unit, error);
	if (r < 0)
		return r;
	snprintf(change->done, sizeof(change->done), "DeviceAllow=" UNIT_DEVICES " " UNIT_ACCESS " was %s %s",
		 undo ? "taken away from" : "added to", unit->name);
	change->changed[HIERARCHY_V1] = change->changed[HIERARCHY_V2] = true;
	return 0;
}

int unit_allow(const char *name, bool undo, struct change *ret_change, struct devcgroup_why *why)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(unit_done) struct unit unit = { .name = name };
	int type = type_of(name), r;

	memset(ret_change, 0, sizeof(*ret_change));
	why->text[0] = 0;
	if (type < 0) {
		devcgroup_because(why, "%s is no service, scope or slice of systemd: leave out --systemd",
				  name);
		return type;
	}
	unit.interface = types[type].interface;
	r = unit_read(&unit);
	if (r >= 0)
		r = change_unit(&unit, undo, ret_change, why, &error);
	if (r < 0 && !why->text[0])
		r = refused(&unit, r, error.message, why);
	sd_bus_error_free(&error);
	return r < 0 ? r : 0;
}

int unit_drop_in(const char *unit, char *buf, size_t size)
{
	int type = type_of(unit);

	if (type < 0)
		return type;
	snprintf(buf, size,
		 "/run/systemd/system.control/%s.d/50-gpusonde-devices.conf with "
		 "\"[%s]\\nDeviceAllow=" UNIT_DEVICES " " UNIT_ACCESS "\"",
		 unit, types[type].section);
	return 0;
}
