// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "owners/given.h"
#include "owners/job_map.h"
#include "owners/names.h"

static void check(const struct owner *owner)
{
	if ((owner->workload != WORKLOAD_CONTAINER && owner->workload != WORKLOAD_POD) || !owner->id[0] ||
	    !memchr(owner->id, 0, sizeof(owner->id)) ||
	    !memchr(owner->namespace, 0, sizeof(owner->namespace)) ||
	    !memchr(owner->pod, 0, sizeof(owner->pod)) ||
	    !memchr(owner->container, 0, sizeof(owner->container)) ||
	    (!owner->pod[0] && !owner->container[0]))
		abort();
	if (owner->workload == WORKLOAD_CONTAINER && !is_container_id(owner->id))
		abort();
}

static void on_listed(const struct owner *owner, void *userdata)
{
	(void)userdata;
	check(owner);
}

static void check_given(const struct given *given)
{
	if (given->n > GIVEN_MAX || !memchr(given->resource, 0, sizeof(given->resource)) ||
	    !memchr(given->pod_uid, 0, sizeof(given->pod_uid)))
		abort();
	for (uint32_t i = 0; i < given->n; i++)
		if (given->list[i].kind == DEVICE_NOT ||
		    !memchr(given->list[i].uuid, 0, sizeof(given->list[i].uuid)))
			abort();
}

static const struct given_by by = { .toolkit = { .variable = true, .mounts = true } };

/* Docker's two files; a byte of 0 separates them. */
static void try_docker(const char *text, size_t n)
{
	const char *end = memchr(text, 0, n);
	struct given given;

	if (end && given_by_docker(text, (size_t)(end - text), end + 1, n - (size_t)(end - text) - 1, &by,
				   &given) == 0)
		check_given(&given);
	docker_init(text, n);
}

/* What a folder of jobs has in a file, for the device that its name means. */
static void try_job_map(const char *name, const char *text, size_t n)
{
	static struct allocation rows[16];
	struct job_map map = { rows, 0, 16, 0 };
	struct device_ref device = { .kind = DEVICE_BY_INDEX };

	(void)job_map_device(name, &device);
	job_map_add(&map, device, text, n);
	for (uint32_t i = 0; i < map.n; i++)
		if (!rows[i].id[0] || !memchr(rows[i].id, 0, sizeof(rows[i].id)))
			abort();
}

/* The first byte chooses the format. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	char name[256] = "", *text;
	struct owner owner;
	struct given given;

	if (size == 0)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	memcpy(name, text, size - 1 < sizeof(name) ? size - 1 : sizeof(name) - 1);
	switch ((data[0] - 'A') & 7) {
	case 0:
		if (owner_of_log_link(name, &owner))
			check(&owner);
		break;
	case 1:
		if (owner_of_log_folder(name, &owner))
			check(&owner);
		break;
	case 2:
		if (owner_of_bundle(id, text, size - 1, &owner))
			check(&owner);
		break;
	case 3:
		if (owner_of_docker(text, size - 1, &owner))
			check(&owner);
		break;
	case 4:
		owners_of_storage(text, size - 1, on_listed, NULL);
		break;
	case 5:
		if (given_by_bundle(text, size - 1, &by, &given) == 0)
			check_given(&given);
		break;
	case 7:
		try_job_map(name, text, size - 1);
		break;
	case 6:
		try_docker(text, size - 1);
		break;
	}
	free(text);
	return 0;
}
