// SPDX-License-Identifier: Apache-2.0
/*
 * Which devices CUDA lets a process see, and in what order.
 *
 * Documented, in CUDA's programming guide (environment variables) and the MIG user guide (device
 * enumeration):
 *   - not set: all; set and empty: none. The list ends before the first invalid token, -1 for example.
 *   - a UUID may be abbreviated to a unique prefix.
 *   - MIG-<UUID>, and MIG-GPU-<UUID of the GPU>/<GPU instance>/<compute instance>.
 *   - only one instance is ever visible, the first, and then no GPU beside it.
 *   - CUDA_DEVICE_ORDER=PCI_BUS_ID is the order of the bus, NVML's; else the fastest come first.
 * Inferred, from PyTorch's count of devices without CUDA (torch/cuda/__init__.py), and what Slurm relies on:
 *   - the first token says what the list is of: indices, GPU-… or MIG-…; one of another kind is a bad one.
 *   - an index is read like strtoul does: blanks before, a sign, digits; what follows the digits is ignored.
 *     Negative: bad. So is any word: NoDevFiles hides all devices for that reason alone.
 *   - a device named twice: no devices at all.
 *   - a GPU in MIG mode stands for its first instance.
 *   - how fast a device is, is CUDA's own measure: an estimate here if the devices differ.
 */
#include "base/cursor.h"
#include "cuda/private.h"

#define BLANKS " \t\n\v\f\r" /* isspace() of the C locale */

struct list {
	const struct cuda_device *devices;
	uint32_t n;
	uint16_t order[VISIBLE_MAX]; /* what an index selects */
	uint32_t order_n;
};

/* First usable instance of the GPU @at; NONE: there is none. */
static uint32_t first_instance(const struct list *list, uint32_t at)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->devices[i].parent[0] && STRV_EQ(list->devices[i].parent, list->devices[at].uuid))
			return i;
	return NONE;
}

static void visible_append(struct list *list, uint32_t device)
{
	if (list->order_n < VISIBLE_MAX)
		list->order[list->order_n++] = (uint16_t)device;
}

/* Fastest first; those of one speed stay in their order. */
static void sort_by_speed(struct list *list)
{
	for (uint32_t i = 1; i < list->order_n; i++) {
		uint16_t device = list->order[i];
		uint32_t at = i;

		for (; at > 0 && list->devices[list->order[at - 1]].speed < list->devices[device].speed; at--)
			list->order[at] = list->order[at - 1];
		list->order[at] = device;
	}
}

static bool speeds_differ(const struct list *list)
{
	for (uint32_t i = 1; i < list->order_n; i++) {
		double a = list->devices[list->order[0]].speed, b = list->devices[list->order[i]].speed;

		if (a < b || a > b || a <= 0)
			return true;
	}
	return false;
}

/* GPUs first, then one instance of each GPU that is in MIG mode. */
static bool visible_enumerate(struct list *list, const char *order)
{
	bool estimated = false;

	for (uint32_t i = 0; i < list->n; i++)
		if (!list->devices[i].mig && !list->devices[i].parent[0])
			visible_append(list, i);
	if (!order || !STRV_EQ(order, "PCI_BUS_ID")) {
		estimated = speeds_differ(list);
		sort_by_speed(list);
	}
	for (uint32_t i = 0; i < list->n; i++) {
		uint32_t instance = list->devices[i].mig ? first_instance(list, i) : NONE;

		if (instance != NONE)
			visible_append(list, instance);
	}
	return estimated;
}

static uint32_t by_index(const struct list *list, const char *token)
{
	uint64_t index = 0;

	token += strspn(token, BLANKS);
	token += *token == '+';
	if (*token < '0' || *token > '9')
		return NONE;
	for (; *token >= '0' && *token <= '9'; token++)
		if (index < VISIBLE_MAX)
			index = index * 10 + (uint64_t)(*token - '0');
	return index < list->order_n ? list->order[index] : NONE;
}

/* MIG-GPU-<UUID>/<GPU instance>/<compute instance>, which newer drivers take, but do not list. */
static uint32_t by_instance(const struct list *list, const char *token)
{
	struct cursor c = cursor_over(token, strlen(token)), gpu;
	uint64_t gi, ci;

	if (!cursor_literal(&c, "MIG-") || cursor_until(&c, '/', &gpu) < 0 || cursor_u64(&c, &gi) < 0 ||
	    !cursor_literal(&c, "/") || cursor_u64(&c, &ci) < 0 || !cursor_eof(&c))
		return NONE;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct cuda_device *d = &list->devices[i];

		if (d->parent[0] && cursor_equals(&gpu, d->parent) && d->gi == gi && d->ci == ci)
			return i;
	}
	return NONE;
}

static uint32_t by_uuid(const struct list *list, const char *token)
{
	size_t n = strlen(token);
	uint32_t found = by_instance(list, token);

	if (found != NONE)
		return found;
	for (uint32_t i = 0; i < list->n; i++) {
		if (strncmp(list->devices[i].uuid, token, n) != 0)
			continue;
		if (found != NONE)
			return NONE;
		found = i;
	}
	return found != NONE && list->devices[found].mig ? first_instance(list, found) : found;
}

/*
 * The next token of a comma list, without blanks around it; false at the end. One that is too long for a UUID
 * is a bad one.
 */
static bool next_token(const char **at, char token[TRACED_UUID])
{
	const char *begin, *end;
	size_t n;

	if (!*at)
		return false;
	begin = *at + strspn(*at, BLANKS);
	end = begin + strcspn(begin, ",");
	*at = *end ? end + 1 : NULL;
	while (end > begin && strchr(BLANKS, end[-1]))
		end--;
	n = (size_t)(end - begin);
	if (n >= TRACED_UUID)
		n = 0;
	memcpy(token, begin, n);
	token[n] = 0;
	return true;
}

static const char *kind_of(const char *token)
{
	if (strncmp(token, "GPU-", 4) == 0)
		return "GPU-";
	return strncmp(token, "MIG-", 4) == 0 ? "MIG-" : "";
}

static void select_devices(const struct list *list, const char *value, struct visible *v)
{
	const char *kind = NULL;
	char token[TRACED_UUID];

	while (next_token(&value, token)) {
		uint32_t device;

		if (!kind)
			kind = kind_of(token);
		if (!STRV_EQ(kind_of(token), kind))
			return;
		device = kind[0] ? by_uuid(list, token) : by_index(list, token);
		if (device == NONE || v->n == VISIBLE_MAX)
			return;
		for (uint32_t i = 0; i < v->n; i++) {
			if (v->device[i] == device) {
				v->n = 0;
				return;
			}
		}
		v->device[v->n++] = (uint16_t)device;
	}
}

void visible_resolve(const struct cuda_device *devices, uint32_t n, const char *value, const char *order,
		     struct visible *ret_visible)
{
	struct list list = { .devices = devices, .n = n };
	struct visible v = { 0 };

	v.estimated = visible_enumerate(&list, order);
	if (value) {
		select_devices(&list, value, &v);
		/* UUIDs name the same devices in any order. */
		v.estimated &= kind_of(value + strspn(value, BLANKS))[0] == 0;
	} else {
		memcpy(v.device, list.order, list.order_n * sizeof(v.device[0]));
		v.n = list.order_n;
	}
	for (uint32_t i = 0; i < v.n; i++) {
		if (devices[v.device[i]].parent[0]) {
			v.device[0] = v.device[i];
			v.n = 1;
		}
	}
	*ret_visible = v;
}
