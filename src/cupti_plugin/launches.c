// SPDX-License-Identifier: Apache-2.0
/* Calls that launch work: their threads and times, of the newest PLACES, by CUPTI's number of the call. */
#include "cupti_plugin/plugin.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/link.h"

enum { PLACES = 1 << 14 };

static struct {
	struct {
		atomic_uint correlation; /* 0: it is written */
		atomic_uint tid;
		atomic_uint_fast64_t time_ns;
	} at[PLACES];
	atomic_uint calls, most;
} launches;

static _Thread_local uint32_t own_tid;

/*
 * CUpti_driver_api_trace_cbid: cuLaunchKernel, cuLaunchCooperativeKernel, cuGraphLaunch, cuLaunchKernelEx,
 * and each for per-thread streams. CUPTIs that do not know one refuse it.
 */
uint32_t launches_function(unsigned i)
{
	static const uint32_t functions[] = { 307, 442, 477, 478, 514, 515, 652, 653, 0 };

	return functions[i];
}

void launches_called(void *userdata, int domain, uint32_t function, const struct callback_data *data)
{
	unsigned place = data->correlation % PLACES, most = atomic_load(&launches.most);

	(void)userdata;
	(void)domain;
	(void)function;
	if (data->site != CALLBACK_ENTER || data->correlation == 0)
		return;
	if (!own_tid)
		own_tid = (uint32_t)syscall(SYS_gettid);
	atomic_store(&launches.at[place].correlation, 0);
	atomic_store(&launches.at[place].tid, own_tid);
	atomic_store(&launches.at[place].time_ns, plugin_now_ns());
	atomic_store(&launches.at[place].correlation, data->correlation);
	if (atomic_fetch_add(&launches.calls, 1) + 1 == most)
		buffers_wake();
}

void launches_begin(uint32_t most)
{
	for (unsigned i = 0; i < PLACES; i++)
		atomic_store(&launches.at[i].correlation, 0);
	atomic_store(&launches.most, most);
	atomic_store(&launches.calls, 0);
}

bool launches_spent(void)
{
	unsigned most = atomic_load(&launches.most);

	return most > 0 && atomic_load(&launches.calls) >= most;
}

bool launches_find(uint32_t correlation, struct launch *ret_launch)
{
	unsigned place = correlation % PLACES;

	if (correlation == 0 || atomic_load(&launches.at[place].correlation) != correlation)
		return false;
	ret_launch->tid = atomic_load(&launches.at[place].tid);
	ret_launch->time_ns = atomic_load(&launches.at[place].time_ns);
	return atomic_load(&launches.at[place].correlation) == correlation;
}
