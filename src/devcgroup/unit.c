// SPDX-License-Identifier: Apache-2.0
/*
 * systemd keeps DeviceAllow= of a unit in a drop-in of its own: /run/systemd/system.control/UNIT.d, and
 * for transient units, a container's scope is one, /run/systemd/transient/UNIT.d. SetUnitProperties writes
 * it, applies it at once, and a daemon-reload reads it again: org.freedesktop.systemd1(5). "char-NAME" is
 * sought in /proc/devices whenever it is applied: systemd.resource-control(5).
 *
 * A rule for one device looks as its owner's would, so those that were added are noted in an extended
 * attribute of the cgroup, which ends with it.
 */
#include "devcgroup/devcgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sys/xattr.h>

#include <systemd/sd-bus.h>

#include "base/strbuf.h"
#include "devcgroup/policy.h"

#define MANAGER "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define SYSTEMD "org.freedesktop.systemd1"
#define PROPERTY "DeviceAllow"
#define NOTE "trusted.gpusonde.systemd" /* rules that we added, a line each */
enum { CALL_US = 10 * 1000 * 1000, ALLOWED_MAX = 512, NOTE_BYTES = 32 << 10, DROP_IN_BYTES = 4096 };

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
	int cgroup;
	char note[NOTE_BYTES];
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

/* ---- which are ours ---- */

static int note_read(struct unit *unit)
{
	ssize_t n = fgetxattr(unit->cgroup, NOTE, unit->note, sizeof(unit->note) - 1);

	unit->note[MAX(n, 0)] = 0;
	return n >= 0 || errno == ENODATA ? 0 : -errno;
}

static int note_write(const struct unit *unit, const char *note)
{
	int r = *note ? fsetxattr(unit->cgroup, NOTE, note, strlen(note), 0) :
			fremovexattr(unit->cgroup, NOTE);

	return r < 0 && (*note || errno != ENODATA) ? -errno : 0;
}

static bool note_has(const char *note, const char *device)
{
	size_t n = strlen(device);

	for (const char *at = note; (at = strstr(at, device)); at += n)
		if ((at == note || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

static bool is_ours(const struct unit *unit, const struct allowed *allowed)
{
	return STRV_EQ(allowed->access, UNIT_ACCESS) &&
	       (STRV_EQ(allowed->device, UNIT_ALL) || note_has(unit->note, allowed->device));
}

static bool is_nvidias(const struct allowed *allowed)
{
	static const char *const begins[] = { "/dev/nvidia", "/dev/char/195:", "char-nvidia" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (strncmp(allowed->device, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static bool has_rule(const struct unit *unit, const char *device)
{
	for (unsigned i = 0; i < unit->n; i++)
		if (STRV_EQ(unit->list[i].device, device) && strchr(unit->list[i].access, 'r') &&
		    strchr(unit->list[i].access, 'w'))
			return true;
	return false;
}

void unit_devices(const struct wanted_devices *wanted, const struct nodes *nodes,
		  struct unit_devices *ret_devices)
{
	ret_devices->n = 0;
	for (unsigned i = 0; i < wanted->n; i++) {
		const struct wanted_device *d = &wanted->list[i];
		char *text = ret_devices->list[ret_devices->n];

		if (d->minor == UINT32_MAX) {
			strcpy(ret_devices->list[0], UNIT_ALL);
			ret_devices->n = 1;
			return;
		}
		/* systemd takes the numbers from this name, whether there is such a node or not. */
		snprintf(text, sizeof(ret_devices->list[0]), "/dev/char/%u:%u", d->major, d->minor);
		for (unsigned j = 0; j < nodes->n; j++)
			if (nodes->list[j].here && nodes->list[j].major == d->major &&
			    nodes->list[j].minor == d->minor)
				snprintf(text, sizeof(ret_devices->list[0]), "/dev/%s", nodes->list[j].name);
		ret_devices->n++;
	}
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

static void say(struct change *change, const char *what, const struct unit *unit, const struct allowed *list,
		unsigned n)
{
	size_t length = 0;

	for (unsigned i = 0; i < n && length < sizeof(change->done); i++)
		length += (size_t)snprintf(change->done + length, sizeof(change->done) - length,
					   "%sDeviceAllow=%s %s", i ? ", " : "", list[i].device,
					   list[i].access);
	if (length < sizeof(change->done))
		snprintf(change->done + length, sizeof(change->done) - length, " %s %s %s",
			 n == 1 ? "was" : "were", what, unit->name);
	change->changed[HIERARCHY_V1] = change->changed[HIERARCHY_V2] = true;
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

/* Noted before they are added: what is undone then was perhaps not done, which harms nothing. */
static int add_ours(struct unit *unit, const struct unit_devices *devices, struct change *change,
		    sd_bus_error *error)
{
	_cleanup_free_ struct allowed *list = calloc(WANTED_MAX, sizeof(*list));
	char before[sizeof(unit->note)];
	size_t length = strlen(unit->note);
	unsigned n = 0;
	int r;

	if (!list)
		return -ENOMEM;
	memcpy(before, unit->note, length + 1);
	for (unsigned i = 0; i < devices->n; i++) {
		if (has_rule(unit, devices->list[i]))
			continue;
		snprintf(list[n].device, sizeof(list[n].device), "%s", devices->list[i]);
		strcpy(list[n++].access, UNIT_ACCESS);
		length += (size_t)snprintf(unit->note + length, sizeof(unit->note) - length, "%s\n",
					   devices->list[i]);
		if (length >= sizeof(unit->note))
			return -E2BIG;
	}
	if (n == 0)
		return 0;
	r = note_write(unit, unit->note);
	if (r == 0)
		r = set_list(unit, list, n, false, error);
	if (r < 0)
		note_write(unit, before);
	else
		say(change, "added to", unit, list, n);
	return r;
}

static int remove_ours(struct unit *unit, struct change *change, sd_bus_error *error)
{
	_cleanup_free_ struct allowed *gone = calloc(ALLOWED_MAX, sizeof(*gone));
	unsigned n = 0, gone_n = 0;
	int r;

	if (!gone)
		return -ENOMEM;
	for (unsigned i = 0; i < unit->n; i++)
		if (is_ours(unit, &unit->list[i]))
			gone[gone_n++] = unit->list[i];
		else
			unit->list[n++] = unit->list[i];
	if (gone_n == 0)
		return note_write(unit, "");
	r = set_list(unit, unit->list, n, true, error);
	if (r == 0)
		r = note_write(unit, "");
	if (r == 0)
		say(change, "taken away from", unit, gone, gone_n);
	return r;
}

/* ---- what is asked for ---- */

static int refused(const struct unit *unit, const struct unit_devices *devices, int r, const char *message,
		   struct devcgroup_why *why)
{
	char drop_in[DROP_IN_BYTES];

	if (r == -EACCES || r == -EPERM) {
		devcgroup_because(why,
				  "systemd does not let this user change %s: run as root (CAP_SYS_ADMIN)",
				  unit->name);
		return r;
	}
	if (unit->bus && (unit->path || r == -ENOENT)) {
		devcgroup_because(why, "systemd refuses it for %s: %s", unit->name,
				  message ? message : strerror(-r));
		return r;
	}
	if (!devices) {
		devcgroup_because(why, "systemd does not answer for %s here (%s): run this on the host",
				  unit->name, message ? message : strerror(-r));
		return -EHOSTDOWN;
	}
	unit_drop_in(unit->name, devices, drop_in, sizeof(drop_in));
	devcgroup_because(
		why,
		"systemd does not answer for %s here (%s): run this on the host, or write there %s and "
		"run systemctl daemon-reload",
		unit->name, message ? message : strerror(-r), drop_in);
	return -EHOSTDOWN;
}

/* Nothing of ours is known. */
static int nothing_to_undo(const struct unit *unit, struct devcgroup_why *why)
{
	for (unsigned i = 0; i < unit->n; i++) {
		if (!is_nvidias(&unit->list[i]))
			continue;
		devcgroup_because(
			why,
			"%s has DeviceAllow=%s %s, but that gpusonde added it is not noted with its cgroup, "
			"as after a restart of the unit: systemctl revert %s takes away what was set until "
			"reboot",
			unit->name, unit->list[i].device, unit->list[i].access, unit->name);
		return -ENOTSUP;
	}
	return 0;
}

static int change_unit(struct unit *unit, const struct unit_devices *devices, struct change *change,
		       struct devcgroup_why *why, sd_bus_error *error)
{
	bool ours = unit->note[0];

	for (unsigned i = 0; i < unit->n; i++)
		ours |= is_ours(unit, &unit->list[i]);
	if (!devices)
		return ours ? remove_ours(unit, change, error) : nothing_to_undo(unit, why);
	if (unit->restricts)
		return add_ours(unit, devices, change, error);
	devcgroup_because(why,
			  "%s restricts no device (DevicePolicy=auto without DeviceAllow=), so it is not "
			  "systemd that denies, and a rule would make it begin: allow the cgroup without "
			  "--systemd",
			  unit->name);
	return -ENOTSUP;
}

int unit_allow(const struct place *place, const char *name, const struct unit_devices *devices, bool undo,
	       struct change *ret_change, struct devcgroup_why *why)
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
	unit.cgroup = place->at[place->at[HIERARCHY_V2].fd >= 0 ? HIERARCHY_V2 : HIERARCHY_V1].fd;
	r = unit_read(&unit);
	/* What is noted is not shown to others: xattr(7). */
	if (r >= 0)
		r = is_administrator() ? note_read(&unit) : -EPERM;
	if (r >= 0)
		r = change_unit(&unit, undo ? NULL : devices, ret_change, why, &error);
	if (r < 0 && !why->text[0])
		r = refused(&unit, undo ? NULL : devices, r, error.message, why);
	sd_bus_error_free(&error);
	return r < 0 ? r : 0;
}

int unit_drop_in(const char *unit, const struct unit_devices *devices, char *buf, size_t size)
{
	int type = type_of(unit);
	struct strbuf text;

	if (type < 0)
		return type;
	strbuf_init(&text, size - 1);
	strbuf_addf(&text, "/run/systemd/system.control/%s.d/50-gpusonde-devices.conf with \"[%s]", unit,
		    types[type].section);
	for (unsigned i = 0; i < devices->n; i++)
		strbuf_addf(&text, "\\nDeviceAllow=%s " UNIT_ACCESS, devices->list[i]);
	strbuf_addc(&text, '"');
	snprintf(buf, size, "%s", text.data);
	strbuf_done(&text);
	return 0;
}
