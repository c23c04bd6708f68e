// SPDX-License-Identifier: Apache-2.0
#include "model/host.h"

#include <math.h>
#include <string.h>

#include "model/private.h"
#include "model/rounding.h"

const struct host_list_row host_lists[HOST_LISTS] = {
	[HOST_DISKS] = { "disks", "device", disk_metrics, DISK_METRICS, HOST_DISKS_LEFT_OUT },
	[HOST_INTERFACES] = { "interfaces", "interface", interface_metrics, INTERFACE_METRICS,
			      HOST_INTERFACES_LEFT_OUT },
};

static double scale_of(const struct metric *m)
{
	return m->scale > 0 ? m->scale : 1;
}

/* How much a counter that fell from @before to @now has risen; negative: it stepped back. */
static double risen_since_fall(const struct metric *m, double before, double now)
{
	double wrap = metric_wrap(m) / scale_of(m);

	if (before >= wrap / 2 && now < wrap / 2)
		return now + wrap - before;
	return now < before / 2 ? now : -1;
}

/* @begun: the sum has begun, with *raw as the newest reading. */
static void host_take(const struct metric *m, bool begun, double now, double *raw, double *sum)
{
	double risen = now - *raw;

	if (m->kind != METRIC_COUNTER || !begun) {
		*sum = *raw = now;
		return;
	}
	if (risen < 0)
		risen = risen_since_fall(m, *raw, now);
	if (risen < 0)
		return;
	*sum += risen;
	*raw = now;
}

/* @raw_p tells which sums have begun: a number that cannot be read once leaves the sum as it is. */
static void sum_rows(const struct metric *rows, unsigned n, const double *now, const uint8_t *p, double *raw,
		     uint8_t *raw_p, double *sum, uint8_t *sum_p)
{
	for (unsigned i = 0; i < n; i++) {
		sum_p[i] = p[i];
		if (!presence_is(p[i]))
			continue;
		host_take(&rows[i], presence_is(raw_p[i]), now[i], &raw[i], &sum[i]);
		raw_p[i] = PRESENCE_PRESENT;
	}
}

static const struct host_device *device_named(const struct host_devices *devices, const char *name,
					      uint32_t *ret_at)
{
	for (*ret_at = 0; *ret_at < devices->n; (*ret_at)++)
		if (STRV_EQ(devices->list[*ret_at].name, name))
			return &devices->list[*ret_at];
	return NULL;
}

/* One that is not there any more is forgotten. */
static void take_devices(const struct host_list_row *list, const struct host_devices *now,
			 struct host_devices *raw, struct host_devices *sum)
{
	const struct host_devices raw_before = *raw, sum_before = *sum;
	uint32_t at;

	raw->n = sum->n = now->n;
	for (uint32_t i = 0; i < now->n; i++) {
		const struct host_device *device = &now->list[i], *known;

		known = device_named(&raw_before, device->name, &at);
		raw->list[i] = known ? *known : (struct host_device){ 0 };
		sum->list[i] = known ? sum_before.list[at] : (struct host_device){ 0 };
		memcpy(raw->list[i].name, device->name, sizeof(device->name));
		memcpy(sum->list[i].name, device->name, sizeof(device->name));
		sum_rows(list->rows, list->n, device->v, device->p, raw->list[i].v, raw->list[i].p,
			 sum->list[i].v, sum->list[i].p);
	}
}

void host_sums_take(struct host_sums *sums, const struct host *reading)
{
	sums->sum.read = sums->raw.read = reading->read;
	sum_rows(host_metrics, HOST_METRICS, reading->v, reading->p, sums->raw.v, sums->raw.p, sums->sum.v,
		 sums->sum.p);
	for (unsigned k = 0; k < HOST_LISTS; k++)
		if (presence_is(reading->p[host_lists[k].left_out]))
			take_devices(&host_lists[k], &reading->devices[k], &sums->raw.devices[k],
				     &sums->sum.devices[k]);
}

static void show_rows(const struct metric *rows, unsigned n, double *v)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = metric_rounded(&rows[i], v[i] * scale_of(&rows[i]));
}

void host_sums_show(const struct host_sums *sums, struct host *ret_host)
{
	*ret_host = sums->sum;
	show_rows(host_metrics, HOST_METRICS, ret_host->v);
	for (unsigned k = 0; k < HOST_LISTS; k++) {
		if (!presence_is(ret_host->p[host_lists[k].left_out]))
			ret_host->devices[k].n = 0;
		for (uint32_t i = 0; i < ret_host->devices[k].n; i++)
			show_rows(host_lists[k].rows, host_lists[k].n, ret_host->devices[k].list[i].v);
	}
}

void model_set_host(struct model *model, const struct host *reading)
{
	host_sums_take(&model->host, reading);
}
