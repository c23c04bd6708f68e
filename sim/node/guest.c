// SPDX-License-Identifier: Apache-2.0
#include "sim/node/guest.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { REFRESH_MS = 100, GUESTS_MAX = 4096 };

static struct live_file *files; /* LIVE_MAX of them, once there is a folder */
static struct guest *all, *chosen; /* GUESTS_MAX of each */
static uint32_t all_count;
static int64_t next_ms;

static bool make_room(void)
{
	if (!getenv("GPUSONDE_SIM_CUDA_DIR"))
		return false;
	if (!files)
		files = malloc(LIVE_MAX * sizeof(*files));
	if (!all)
		all = malloc(GUESTS_MAX * sizeof(*all));
	if (!chosen)
		chosen = malloc(GUESTS_MAX * sizeof(*chosen));
	return files && all && chosen;
}

static void add(const struct live_file *file, const struct live_device *device)
{
	struct guest *guest;

	if (device->contexts == 0 || all_count == GUESTS_MAX)
		return;
	guest = &all[all_count++];
	guest->pid = file->pid;
	guest->gpu = device->gpu;
	guest->instance = device->instance;
	guest->bytes = device->live_bytes + device->contexts * LIVE_CONTEXT_BYTES;
	memcpy(guest->periods, device->periods, sizeof(guest->periods));
}

static void refresh(int64_t now_ms)
{
	uint32_t count;

	if (now_ms < next_ms && next_ms - now_ms <= REFRESH_MS)
		return;
	next_ms = now_ms + REFRESH_MS;
	all_count = 0;
	if (!make_room())
		return;
	count = live_read(files, LIVE_MAX);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < files[i].device_count; j++)
			add(&files[i], &files[i].devices[j]);
	}
}

uint32_t guests_of(uint32_t gpu, int instance, int64_t now_ms, const struct guest **ret_guests)
{
	uint32_t count = 0;

	refresh(now_ms);
	for (uint32_t i = 0; i < all_count; i++) {
		if (all[i].gpu == (int32_t)gpu && (instance < 0 || all[i].instance == instance))
			chosen[count++] = all[i];
	}
	*ret_guests = chosen;
	return count;
}

uint64_t guests_bytes(uint32_t gpu, int instance, int64_t now_ms)
{
	const struct guest *guests;
	uint32_t count = guests_of(gpu, instance, now_ms, &guests);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += guests[i].bytes;
	return bytes;
}

uint32_t guest_percent(const struct guest *guest, uint64_t second)
{
	return live_percent(guest->periods, second);
}

uint32_t guests_percent(uint32_t gpu, int64_t now_ms)
{
	const struct guest *guests;
	uint32_t count = guests_of(gpu, -1, now_ms, &guests), percent = 0;

	for (uint32_t i = 0; i < count && now_ms >= 1000; i++)
		percent += guest_percent(&guests[i], (uint64_t)now_ms / 1000 - 1);
	return percent;
}
