// SPDX-License-Identifier: Apache-2.0
#include "agent/cupti.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/plugin_socket.h"
#include "base/clock.h"
#include "base/saturated.h"
#include "model/gpu_work.h"

/* Clocks that are compared may differ by so much; work is launched once the plugin has connected. */
#define UNSURE_NS (uint64_t)NSEC_PER_SEC

struct cupti_times {
	struct model *model;
	struct plugin_socket *socket;
	struct gpu_times *newest; /* NULL: none yet */
	uint64_t lost, lost_before; /* of the process that receives now, and of those before */
	uint64_t dropped, dropped_before; /* the same, of records */
	uint64_t refused; /* records of times that cannot be, or of processes that are others by now */
	cupti_works_fn *works;
	void *userdata;
};

static bool uuid_is_valid(const char *uuid, size_t size)
{
	return plugin_text_ends(uuid, size) && uuid[strspn(uuid, "GPU-0123456789abcdef")] == '\0';
}

static bool work_is_valid(const struct gpu_work *work)
{
	return work->pid > 0 && work->record.kind != CUPTI_DEVICE && cupti_record_is_valid(&work->record);
}

static bool row_is_valid(const void *of, enum plugin_table table)
{
	const struct gpu_time *row = of;

	if (table == PLUGIN_TABLE_RECORDS)
		return work_is_valid(of);
	return table == PLUGIN_TABLE_ROWS && row->pid > 0 && row->state < CUPTI_STATES &&
	       row->clock < CUPTI_CLOCKS && row->gone <= 1 && row->told <= 1 &&
	       uuid_is_valid(row->uuid, sizeof(row->uuid)) && plugin_number_is_sane(row->kernel_seconds) &&
	       plugin_number_is_sane(row->copy_seconds) && plugin_number_is_sane(row->busy_seconds) &&
	       plugin_number_is_sane(row->observed_seconds) && row->estimated_seconds == 0 &&
	       row->comm[0] == '\0';
}

static const struct plugin_layout layout = { .row_bytes = sizeof(struct gpu_time),
					     .gone_at = offsetof(struct gpu_time, gone),
					     .comm_at = offsetof(struct gpu_time, comm) };

static int by_process(const void *a, const void *b)
{
	const struct gpu_time *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->since_boot_ns != y->since_boot_ns)
		return x->since_boot_ns < y->since_boot_ns ? -1 : 1;
	return (x->device > y->device) - (x->device < y->device);
}

static struct gpu_times *rows_take(const struct cupti_times *times, const struct arriving *table)
{
	const struct gpu_times *newest = times->newest;
	uint32_t n = plugin_rows_name(&layout, table->list, table->n, newest ? newest->rows : NULL,
				      newest ? newest->n : 0);

	if (n > 0)
		qsort(table->list, n, sizeof(struct gpu_time), by_process);
	return gpu_times_new(table->list, n);
}

/* Whether it can have been in the time of the connection. */
static bool times_are_possible(const struct gpu_work *work, uint64_t boot_offset_ns, uint64_t now_ns)
{
	const union cupti_record *r = &work->record;
	uint64_t since_ns = work->since_boot_ns - MIN(work->since_boot_ns, boot_offset_ns + UNSURE_NS),
		 start_ns = r->kind == CUPTI_SLICE ? r->slice.start_ns : r->work.start_ns,
		 end_ns = r->kind == CUPTI_SLICE ? r->slice.end_ns : r->work.end_ns;

	if (r->kind == CUPTI_NAME || (r->kind == CUPTI_SLICE && start_ns == end_ns))
		return true;
	return start_ns >= since_ns && end_ns <= now_ns + UNSURE_NS;
}

/* Those of one connection stand together, mostly: one look at /proc for each. */
static void works_take(struct cupti_times *times, const struct arriving *table)
{
	struct gpu_works *works = gpu_works_new(table->n, times->newest);
	uint64_t now_ns = (uint64_t)clock_mono_ns(), boot_offset_ns = (uint64_t)clock_boot_ns() - now_ns;
	const struct gpu_work *list = table->list, *last = NULL;
	bool own = false;

	if (!works) {
		times->refused += table->n;
		return;
	}
	for (uint32_t i = 0; i < table->n; i++) {
		if (!last || last->pid != list[i].pid || last->since_boot_ns != list[i].since_boot_ns)
			own = plugin_row_is_of_process((const struct plugin_row *)&list[i]);
		last = &list[i];
		if (own && times_are_possible(&list[i], boot_offset_ns, now_ns))
			works->list[works->n++] = list[i];
		else
			times->refused++;
	}
	times->works(works, times->userdata);
}

static void tables_taken(const struct arriving tables[static PLUGIN_TABLES],
			 const struct plugin_answer *answer, uint64_t refused, void *userdata)
{
	struct cupti_times *times = userdata;
	struct gpu_times *taken = rows_take(times, &tables[PLUGIN_TABLE_ROWS]);

	times->lost = answer->lost;
	times->dropped = answer->records_dropped;
	if (!taken)
		return;
	taken->refused = refused;
	taken->left_out = answer->dropped;
	taken->lost = add_saturated(times->lost_before, times->lost);
	taken->dropped = add_saturated(times->dropped_before, times->dropped + times->refused);
	gpu_times_unref(times->newest);
	times->newest = taken;
	model_set_gpu_times(times->model, taken);
	works_take(times, &tables[PLUGIN_TABLE_RECORDS]);
}

static void receiver_lost(void *userdata)
{
	struct cupti_times *times = userdata;

	times->lost_before = add_saturated(times->lost_before, times->lost);
	times->dropped_before = add_saturated(times->dropped_before, times->dropped);
	times->lost = times->dropped = 0;
}

void cupti_times_tick(struct cupti_times *times)
{
	plugin_socket_tick(times->socket);
}

pid_t cupti_times_pid(const struct cupti_times *times)
{
	return plugin_socket_pid(times->socket);
}

int cupti_times_new(sd_event *event, struct model *model, const char *path, const struct cupti_wanted *wanted,
		    cupti_works_fn *works, void *userdata, struct cupti_times **ret_times)
{
	struct cupti_times *times = calloc(1, sizeof(*times));
	const struct plugin_socket_config config = { .role = "cupti",
						     .option = "cupti.socket",
						     .plugin = "CUPTI's",
						     .path = path,
						     .row_bytes = sizeof(struct gpu_time),
						     .rows_max = GPU_TIMES_MAX,
						     .record_bytes = sizeof(struct gpu_work),
						     .records_max = GPU_WORKS_MAX,
						     .greeting = wanted,
						     .greeting_bytes = sizeof(*wanted),
						     .row_is_valid = row_is_valid,
						     .taken = tables_taken,
						     .lost = receiver_lost,
						     .userdata = times };
	int r = times ? plugin_socket_new(event, &config, &times->socket) : -ENOMEM;

	if (r < 0) {
		cupti_times_free(times);
		return r;
	}
	times->model = model;
	times->works = works;
	times->userdata = userdata;
	*ret_times = times;
	return 0;
}

void cupti_times_free(struct cupti_times *times)
{
	if (!times)
		return;
	plugin_socket_free(times->socket);
	gpu_times_unref(times->newest);
	free(times);
}
