// SPDX-License-Identifier: Apache-2.0
#include "cdi/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hashmap.h"
#include "base/macro.h"

/* The nodes that configure and watch MIG; the driver's numbers for them are fixed. */
enum { CAP_CONFIG = 1, CAP_MONITOR = 2 };

/* ---- the driver's list of capabilities ---- */

static bool number_after(struct cursor *c, const char *literal, uint32_t *ret_number)
{
	struct cursor at = *c;
	uint64_t number;

	if (!cursor_literal(&at, literal) || cursor_u64(&at, &number) < 0 || number >= DEVICE_REF_NO)
		return false;
	*ret_number = (uint32_t)number;
	*c = at;
	return true;
}

/* "gpu0/gi7/access 66" or "gpu0/gi7/ci0/access 67"; others are no instances' */
static bool take_cap(struct cursor line, struct mig_cap *ret_cap)
{
	struct mig_cap cap = { .ci = DEVICE_REF_NO };

	if (!number_after(&line, "gpu", &cap.gpu) || !number_after(&line, "/gi", &cap.gi))
		return false;
	number_after(&line, "/ci", &cap.ci);
	if (!number_after(&line, "/access ", &cap.minor))
		return false;
	cursor_skip_space(&line);
	*ret_cap = cap;
	return cursor_eof(&line);
}

static int compare_caps(const void *a, const void *b)
{
	uint32_t x = ((const struct mig_cap *)a)->minor, y = ((const struct mig_cap *)b)->minor;

	return x < y ? -1 : x > y;
}

int mig_caps_parse(const char *text, size_t n, struct mig_caps *ret_caps)
{
	struct mig_caps caps = { .list = calloc(MIG_CAPS_MAX, sizeof(*caps.list)) };
	struct cursor all = cursor_over(text, n), line;
	struct mig_cap cap;

	if (!caps.list)
		return -ENOMEM;
	while (cursor_until(&all, '\n', &line) == 0) {
		if (!take_cap(line, &cap))
			continue;
		if (caps.n == MIG_CAPS_MAX)
			caps.dropped++;
		else
			caps.list[caps.n++] = cap;
	}
	qsort(caps.list, caps.n, sizeof(caps.list[0]), compare_caps);
	*ret_caps = caps;
	return 0;
}

void mig_caps_done(struct mig_caps *caps)
{
	free(caps->list);
	*caps = (struct mig_caps){ 0 };
}

static const struct mig_cap *find_cap(const struct mig_caps *caps, uint32_t minor)
{
	const struct mig_cap key = { .minor = minor };

	return caps && caps->n ? bsearch(&key, caps->list, caps->n, sizeof(key), compare_caps) : NULL;
}

/* ---- nodes ---- */

static void add_cap(struct gpu_nodes *nodes, uint32_t minor)
{
	if (minor == CAP_CONFIG || minor == CAP_MONITOR)
		return;
	for (uint32_t i = 0; i < nodes->caps_n; i++)
		if (nodes->caps[i] == minor)
			return;
	if (nodes->caps_n == GPU_NODES_MAX)
		nodes->cut = true;
	else
		nodes->caps[nodes->caps_n++] = minor;
}

bool gpu_nodes_add_number(struct gpu_nodes *nodes, uint64_t major, uint64_t minor)
{
	if (major != NVIDIA_MAJOR || minor >= NVIDIA_MINORS)
		return false;
	nodes->gpus[minor / 8] |= (uint8_t)(1 << minor % 8);
	return true;
}

bool gpu_nodes_add(struct gpu_nodes *nodes, const char *path)
{
	struct cursor c = cursor_over(path, strlen(path));
	uint32_t number;

	if (number_after(&c, "/dev/nvidia-caps/nvidia-cap", &number) && cursor_eof(&c)) {
		add_cap(nodes, number);
		return true;
	}
	return number_after(&c, "/dev/nvidia", &number) && cursor_eof(&c) &&
	       gpu_nodes_add_number(nodes, NVIDIA_MAJOR, number);
}

static bool has_cap(const struct gpu_nodes *nodes, uint32_t minor)
{
	for (uint32_t i = 0; i < nodes->caps_n; i++)
		if (nodes->caps[i] == minor)
			return true;
	return false;
}

bool gpu_nodes_equal(const struct gpu_nodes *a, const struct gpu_nodes *b)
{
	if (a->cut || b->cut || a->caps_n != b->caps_n || memcmp(a->gpus, b->gpus, sizeof(a->gpus)) != 0)
		return false;
	for (uint32_t i = 0; i < a->caps_n; i++)
		if (!has_cap(b, a->caps[i]))
			return false;
	return true;
}

uint64_t gpu_nodes_hash(const struct gpu_nodes *nodes)
{
	uint64_t hash = hash_bytes(nodes->gpus, sizeof(nodes->gpus));

	for (uint32_t i = 0; i < nodes->caps_n; i++)
		hash += hash_bytes(&nodes->caps[i], sizeof(nodes->caps[i]));
	return hash;
}

/* ---- what they stand for ---- */

/* A compute instance comes with its GPU instance's node; alone, that one stands for all of it. */
static bool is_whole(const struct gpu_nodes *nodes, const struct mig_caps *caps, const struct mig_cap *cap)
{
	for (uint32_t i = 0; i < nodes->caps_n; i++) {
		const struct mig_cap *other = find_cap(caps, nodes->caps[i]);

		if (other->gpu == cap->gpu && other->gi == cap->gi && other->ci != DEVICE_REF_NO)
			return false;
	}
	return true;
}

static struct device_ref ref_by_minor(uint32_t minor, uint32_t gi, uint32_t ci)
{
	struct device_ref ref = DEVICE_REF(DEVICE_BY_MINOR);

	ref.index = minor;
	ref.gi = gi;
	ref.ci = ci;
	return ref;
}

static uint32_t add_instances(const struct gpu_nodes *nodes, const struct mig_caps *caps, uint32_t gpu,
			      struct device_ref *list, uint32_t max, bool *ret_any)
{
	uint32_t n = 0;

	*ret_any = false;
	for (uint32_t i = 0; i < nodes->caps_n; i++) {
		const struct mig_cap *cap = find_cap(caps, nodes->caps[i]);

		if (cap->gpu != gpu)
			continue;
		*ret_any = true;
		if (n < max && (cap->ci != DEVICE_REF_NO || is_whole(nodes, caps, cap)))
			list[n++] = ref_by_minor(gpu, cap->gi, cap->ci);
	}
	return n;
}

uint32_t gpu_nodes_refs(const struct gpu_nodes *nodes, const struct mig_caps *caps,
			struct device_ref *ret_list, uint32_t max)
{
	uint32_t n = 0;
	bool any;

	for (uint32_t i = 0; i < nodes->caps_n; i++)
		if (!find_cap(caps, nodes->caps[i]))
			return 0;
	for (uint32_t gpu = 0; gpu < NVIDIA_MINORS && !nodes->cut; gpu++) {
		if (!(nodes->gpus[gpu / 8] & 1 << gpu % 8))
			continue;
		n += add_instances(nodes, caps, gpu, ret_list + n, max - n, &any);
		if (!any && n < max)
			ret_list[n++] = ref_by_minor(gpu, DEVICE_REF_NO, DEVICE_REF_NO);
	}
	return n;
}
