// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "host/parse.h"

static bool every_second(const char *name, _unused_ void *userdata)
{
	return strlen(name) % 2 == 0;
}

static void check_number(double v, uint8_t p)
{
	if (presence_is(p) && (!isfinite(v) || v < 0))
		abort();
}

/* Numbers are numbers; names are texts, each once. */
static void check_devices(const struct host_devices *devices, unsigned rows)
{
	if (devices->n > HOST_DEVICES_MAX)
		abort();
	for (uint32_t i = 0; i < devices->n; i++) {
		const struct host_device *device = &devices->list[i];

		if (!memchr(device->name, 0, sizeof(device->name)) || !device->name[0] ||
		    !utf8_valid(device->name, strlen(device->name)))
			abort();
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(devices->list[k].name, device->name) == 0)
				abort();
		for (unsigned row = 0; row < rows; row++)
			check_number(device->v[row], device->p[row]);
	}
}

/* The input is the text of any of the files. */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct cursor text = cursor_over(data, size);
	struct host_devices devices;

	for (unsigned row = 0; row < HOST_METRICS; row++) {
		double value = 0;
		uint8_t p = host_parse(text, &host_columns[row], &value);

		check_number(value, p);
	}
	host_parse_disks(text, every_second, NULL, &devices);
	check_devices(&devices, DISK_METRICS);
	host_parse_interfaces(text, &devices);
	check_devices(&devices, INTERFACE_METRICS);
	return 0;
}
