// SPDX-License-Identifier: Apache-2.0
/*
 * Devices: the node's, those a process sees, and the one that each of its contexts is on.
 *
 * A context whose ordinal is known is on that one of the process's visible devices, of those which its
 * container or job was given. Otherwise (its creation
 * was not seen) it is on the only device that the process can see, else on the only one where NVML lists the
 * process, else unknown: "". CUDA reads the environment in cuInit, which sends it. Of a process that may have
 * called cuInit before it was traced, the environment is read later: an estimate if it has changed.
 */
#include "cuda/private.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

#define NVML_HOLDS_NS (30 * NSEC_PER_SEC) /* NVML's listing of a process; its readings may be 10 s apart */

uint32_t device_uuid(struct cuda *cuda, const char *uuid)
{
	uint32_t room = MIN(MAX(16u, cuda->uuids_room * 2), (uint32_t)DEVICES_MAX);
	char(*uuids)[TRACED_UUID];
	struct total *totals;

	if (strnlen(uuid, TRACED_UUID) == TRACED_UUID)
		return 0;
	for (uint32_t i = 0; i < cuda->uuids_n; i++)
		if (STRV_EQ(cuda->uuids[i], uuid))
			return i;
	if (cuda->uuids_n == cuda->uuids_room) {
		if (room <= cuda->uuids_room)
			return 0;
		uuids = realloc(cuda->uuids, room * sizeof(*uuids));
		if (!uuids)
			return 0;
		cuda->uuids = uuids;
		totals = realloc(cuda->totals, room * sizeof(*totals));
		if (!totals)
			return 0;
		cuda->totals = totals;
		cuda->uuids_room = room;
	}
	snprintf(cuda->uuids[cuda->uuids_n], TRACED_UUID, "%s", uuid);
	memset(&cuda->totals[cuda->uuids_n], 0, sizeof(cuda->totals[0]));
	return cuda->uuids_n++;
}

const struct cuda_device *device_find(const struct cuda *cuda, uint32_t uuid)
{
	for (uint32_t i = 0; i < cuda->devices_n; i++)
		if (uuid != 0 && cuda->device_uuids[i] == uuid)
			return &cuda->devices[i];
	return NULL;
}

/* NULL: not set. The first of equal names counts, as for getenv(). */
static const char *environment_variable(char *environment, size_t size, const char *name)
{
	size_t n = strlen(name);

	for (char *at = environment, *end = environment + size; at < end; at += strlen(at) + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	return NULL;
}

/*
 * The node's devices that the container allows; @ret_map: their indexes in cuda->devices. Returns what
 * ops.allowed() does.
 */
static int container_devices(struct cuda *cuda, uint32_t tgid, struct cuda_device *ret_devices,
			     uint16_t *ret_map, uint32_t *ret_n)
{
	char uuids[VISIBLE_MAX][TRACED_UUID];
	size_t allowed = 0;
	uint32_t n = 0;
	int r = cuda->ops.allowed ? cuda->ops.allowed(tgid, uuids, VISIBLE_MAX, &allowed, cuda->userdata) :
				    -ENOENT;

	if (r < 0)
		return r == -EAGAIN || r == -ENODATA || r == -ENXIO ? r : -ENOENT; /* it is gone, say */
	for (uint32_t i = 0; i < cuda->devices_n; i++) {
		for (size_t k = 0; k < MIN(allowed, (size_t)VISIBLE_MAX); k++) {
			const struct cuda_device *d = &cuda->devices[i];

			/* A GPU in MIG mode is listed with its allowed instances, and vice versa. */
			if (strncmp(d->uuid, uuids[k], TRACED_UUID) != 0 &&
			    !(d->parent[0] && strncmp(d->parent, uuids[k], TRACED_UUID) == 0))
				continue;
			ret_map[n] = (uint16_t)i;
			ret_devices[n++] = *d;
			break;
		}
	}
	*ret_n = n;
	return r;
}

/*
 * Adds the GPUs of instances, in MIG mode, so that instances whose GPU is not allowed are also found by
 * index.
 */
static uint32_t add_parents(const struct cuda *cuda, struct cuda_device *devices, uint16_t *map, uint32_t n)
{
	uint32_t before = n;

	for (uint32_t i = 0; i < cuda->devices_n && n < cuda->devices_n; i++) {
		bool here = false, wanted = false;

		for (uint32_t k = 0; k < before; k++) {
			here |= map[k] == i;
			wanted |= devices[k].parent[0] && STRV_EQ(devices[k].parent, cuda->devices[i].uuid);
		}
		if (wanted && !here) {
			map[n] = (uint16_t)i;
			devices[n++] = cuda->devices[i];
		}
	}
	return n;
}

/* What selects the devices of a process. */
struct selection {
	bool known, estimated;
	const char *visible, *order; /* NULL: not set */
};

static void take_visible(struct cuda *cuda, struct process *p, const struct selection *selection)
{
	_cleanup_free_ struct cuda_device *devices = calloc(cuda->devices_n + 1, sizeof(*devices));
	_cleanup_free_ uint16_t *map = calloc(cuda->devices_n + 1, sizeof(*map));
	struct visible visible;
	uint32_t n = 0;
	bool limited;
	int r;

	if (!devices || !map)
		return;
	r = container_devices(cuda, p->tgid, devices, map, &n);
	limited = r >= 0;
	p->limit_known = r == CUDA_ALLOWED_KNOWN || r == CUDA_ALLOWED_GIVEN || r == -ENOENT;
	p->limit_missed = r == -ENXIO;
	if (r == -EAGAIN || r == -ENXIO)
		return;
	if (limited)
		n = add_parents(cuda, devices, map, n);
	visible_resolve(limited ? devices : cuda->devices, limited ? n : cuda->devices_n, selection->visible,
			selection->order, &visible);
	p->visible_known = true;
	p->visible_estimated =
		visible.estimated || selection->estimated || r > CUDA_ALLOWED_KNOWN || r == -ENODATA;
	p->visible_doubtful = p->visible_estimated || limited;
	p->visible_n = (uint8_t)visible.n;
	for (uint32_t i = 0; i < visible.n; i++)
		p->visible[i] = cuda->device_uuids[limited ? map[visible.device[i]] : visible.device[i]];
}

/* Reads the process's environment into cuda->environment. enum cuda_environment; -errno. */
static int read_environment(struct cuda *cuda, const struct process *p, size_t *ret_n)
{
	size_t n = 0;
	int r = cuda->ops.environment ? cuda->ops.environment(p->tgid, cuda->environment, ENVIRONMENT_MAX - 1,
							      &n, cuda->userdata) :
					-ENOTSUP;

	*ret_n = r < 0 ? 0 : MIN(n, (size_t)ENVIRONMENT_MAX - 1);
	cuda->environment[*ret_n] = 0;
	return r;
}

static struct selection selection_read(struct cuda *cuda, int state, size_t n)
{
	struct selection s = {
		.visible = environment_variable(cuda->environment, n, "CUDA_VISIBLE_DEVICES"),
		.order = environment_variable(cuda->environment, n, "CUDA_DEVICE_ORDER"),
		.estimated = state == CUDA_ENVIRONMENT_CHANGED,
	};

	s.known = (state == CUDA_ENVIRONMENT_KEPT || s.estimated) &&
		  (s.visible || n < ENVIRONMENT_MAX - 1); /* it may be in the part that was cut off */
	return s;
}

static struct selection selection_of(struct cuda *cuda, const struct process *p)
{
	const struct variable *visible = &p->variables[TRACE_VARIABLE_VISIBLE];
	const struct variable *order = &p->variables[TRACE_VARIABLE_ORDER];
	struct selection s = { .known = visible->known && order->known,
			       .visible = visible->value,
			       .order = order->value };
	size_t n;
	int state;

	if (s.known && !(p->incomplete & TRACED_INCOMPLETE_LATE))
		return s;
	state = read_environment(cuda, p, &n);
	if (!s.known)
		return selection_read(cuda, state, n);
	/* It may have been initialised by an earlier cuInit, when the variables were others. */
	s.estimated = state != CUDA_ENVIRONMENT_KEPT;
	return s;
}

static void device_look(struct cuda *cuda, struct process *p)
{
	struct selection selection;

	p->looked = true;
	p->visible_known = p->limit_missed = false;
	p->visible_n = 0;
	if (cuda->devices_n == 0)
		return;
	selection = selection_of(cuda, p);
	if (selection.known)
		take_visible(cuda, p, &selection);
}

static bool is_listed(const struct cuda *cuda, const struct usage *u)
{
	return u->nvml.window != 0 && cuda->window_start_ns - u->nvml.received_ns < NVML_HOLDS_NS;
}

/* The only device where NVML lists the process; 0: none or several. */
static uint32_t nvml_device(const struct cuda *cuda, const struct process *p)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < p->usages_n; i++) {
		const struct usage *u = &p->usages[i];

		if (!is_listed(cuda, u))
			continue;
		if (found)
			return 0;
		found = u->device;
	}
	return found;
}

static uint32_t lone_device(const struct cuda *cuda, const struct process *p)
{
	uint32_t only = 0, n = 0;

	if (p->visible_known && p->visible_n == 1)
		return p->visible[0];
	for (uint32_t i = 0; i < cuda->devices_n && !p->visible_known; i++) {
		if (!cuda->devices[i].mig) {
			only = cuda->device_uuids[i];
			n++;
		}
	}
	return n == 1 ? only : nvml_device(cuda, p);
}

/*
 * The device where NVML lists the process, and which it could not see by what is known: that is not true
 * then. 0: there is none.
 */
static uint32_t contradicted_by(const struct cuda *cuda, const struct process *p)
{
	uint32_t found = p->visible_known && p->visible_doubtful ? nvml_device(cuda, p) : 0;

	for (uint32_t i = 0; i < p->visible_n; i++)
		if (p->visible[i] == found)
			return 0;
	return found;
}

void device_resolve(struct cuda *cuda, struct process *p)
{
	uint32_t lone, other;

	if (!p->looked)
		device_look(cuda, p);
	other = contradicted_by(cuda, p);
	lone = other ? other : lone_device(cuda, p);
	for (uint32_t i = 0; i < p->contexts_n; i++) {
		struct context *c = &p->contexts[i];
		uint32_t uuid = lone;

		if (c->ordinal >= 0 && p->visible_known && !other)
			uuid = c->ordinal < p->visible_n ? p->visible[c->ordinal] : 0;
		c->usage = uuid ? process_usage(p, uuid) : 0;
	}
}

/* A value that was cut or could not be read is not known. */
static void variable_take(struct variable *v, const struct trace_name *event, uint32_t size)
{
	size_t n = strnlen(event->name, MIN(size - sizeof(*event), (size_t)event->name_n));
	bool read = !event->cut && !(event->header.flags & TRACE_FLAG_UNREAD) && n <= VALUE_MAX;

	free(TAKE_PTR(v->value));
	if (event->of == TRACE_SET_YES && read)
		v->value = strndup(event->name, n);
	v->known = v->value || event->of == TRACE_SET_NO;
	v->seen = true;
}

void device_variable(struct cuda *cuda, struct process *p, const struct trace_name *event, uint32_t size)
{
	struct variable *v = &p->variables[event->handle % TRACE_VARIABLES];

	if (event->handle >= TRACE_VARIABLES || (v->seen && p->initialised))
		return; /* CUDA has read it */
	variable_take(v, event, size);
	p->looked = false;
	if (event->handle == TRACE_VARIABLES - 1)
		device_resolve(cuda, p);
}

static int keep_devices(struct cuda *cuda, const struct cuda_device *devices, size_t n)
{
	_cleanup_free_ struct cuda_device *copy = calloc(n + 1, sizeof(*copy));
	_cleanup_free_ uint16_t *uuids = calloc(n + 1, sizeof(*uuids));

	if (!copy || !uuids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		copy[i] = devices[i];
		copy[i].uuid[TRACED_UUID - 1] = copy[i].parent[TRACED_UUID - 1] = 0;
		uuids[i] = (uint16_t)device_uuid(cuda, copy[i].uuid);
		cuda->totals[uuids[i]].device_cores = copy[i].cores;
		cuda->totals[uuids[i]].device_memory = copy[i].memory;
	}
	free(cuda->devices);
	free(cuda->device_uuids);
	cuda->devices = TAKE_PTR(copy);
	cuda->device_uuids = TAKE_PTR(uuids);
	cuda->devices_n = (uint32_t)n;
	cuda->totals[0].device_cores = 0;
	cuda->totals[0].device_memory = 0;
	return 0;
}

int cuda_set_devices(struct cuda *cuda, const struct cuda_device *devices, size_t n)
{
	int r;

	if (n > DEVICES_MAX)
		return -E2BIG;
	if (n == cuda->devices_n && (n == 0 || memcmp(devices, cuda->devices, n * sizeof(*devices)) == 0))
		return 0;
	r = keep_devices(cuda, devices, n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		if (p->over)
			continue;
		/* What CUDA has once enumerated stays. */
		if (!p->initialised || p->visible_n == 0)
			p->looked = false;
		device_resolve(cuda, p);
	}
	return 0;
}

static bool is_process(const struct process *p, struct process_id id)
{
	const struct process_id ours = { .pid = p->tgid, .start_ticks = process_ticks(p->start_boot_ns) };

	return process_id_may_equal(ours, id);
}

void cuda_environment(struct cuda *cuda, uint32_t tgid)
{
	struct process *p = process_find(cuda, tgid);

	if (!p || p->over || p->visible_known)
		return;
	p->looked = false;
	device_resolve(cuda, p);
}

void cuda_limits_changed(struct cuda *cuda)
{
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		if (p->over || p->limit_known)
			continue;
		p->looked = false;
		device_resolve(cuda, p);
	}
}

enum traced_unplaced device_unplaced(const struct cuda *cuda, const struct process *p)
{
	/* Work of a context that was not seen made. */
	bool missing = p->contexts_n == 1 && p->contexts[CONTEXT_UNKNOWN].usage == 0 && p->usages[0].touched;

	for (uint32_t i = CONTEXT_UNKNOWN + 1; i < p->contexts_n; i++)
		missing |= !p->contexts[i].gone && p->contexts[i].usage == 0;
	if (!missing)
		return TRACED_PLACED;
	if (cuda->devices_n == 0)
		return TRACED_UNPLACED_DEVICES;
	if (!p->visible_known)
		return p->limit_missed ? TRACED_UNPLACED_CONTAINER : TRACED_UNPLACED_ENVIRONMENT;
	return p->visible_n == 0 ? TRACED_UNPLACED_NONE : TRACED_UNPLACED_CONTEXT;
}

void cuda_nvml(struct cuda *cuda, struct process_id id, const char *uuid, double busy_seconds,
	       double observed_seconds, double memory_bytes)
{
	struct process *p = process_find(cuda, id.pid);
	uint32_t device = p && !p->over && is_process(p, id) ? device_uuid(cuda, uuid) : 0;
	uint32_t index = device ? process_usage(p, device) : 0;
	struct usage *u;
	bool fresh;

	if (index == 0)
		return;
	u = &p->usages[index];
	fresh = !is_listed(cuda, u);
	u->nvml = (struct nvml_figures){ .busy = busy_seconds,
					 .observed = observed_seconds,
					 .memory = memory_bytes,
					 .window = cuda->window,
					 .received_ns = cuda->window_start_ns };
	if (fresh)
		device_resolve(cuda, p);
}
