// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/sums.h"

/* Grows the stored range to include buckets @first to @end - 1, keeping their values. */
static int widen(struct sums_call *call, unsigned first, unsigned end)
{
	unsigned old_end = call->first + call->n;
	uint64_t *buckets;

	if (call->n > 0) {
		first = MIN(first, (unsigned)call->first);
		end = MAX(end, old_end);
		if (first == call->first && end == old_end)
			return 0;
	}
	buckets = calloc(end - first, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	if (call->n > 0)
		memcpy(buckets + (call->first - first), call->buckets, call->n * sizeof(*buckets));
	free(call->buckets);
	call->buckets = buckets;
	call->first = (uint16_t)first;
	call->n = (uint16_t)(end - first);
	return 0;
}

/*
 * The kernel's 32-bit buckets wrap. The lower 32 bits of the stored ones are the kernel's at the last
 * reading.
 */
static int add_buckets(struct sums_call *call, const struct trace_stat *stat, struct trace_sum *total)
{
	unsigned first = 0, end = TRACE_BUCKETS;
	int r;

	while (first < end && stat->buckets[first] == 0)
		first++;
	while (end > first && stat->buckets[end - 1] == 0)
		end--;
	if (call->n == 0 && first == end)
		return 0;
	r = first < end ? widen(call, first, end) : 0;
	if (r < 0)
		return r;
	for (unsigned i = 0; i < call->n; i++) {
		uint32_t grown = stat->buckets[call->first + i] - (uint32_t)call->buckets[i];

		call->buckets[i] += grown;
		total->buckets[call->first + i] += grown;
	}
	return 0;
}

/* Sums of the kernel side never decrease; a decrease is ignored. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* The slot of a code, or the first free one; TRACE_ERROR_CODES_MAX: neither. */
static unsigned slot_of(const struct trace_sum *sum, int32_t code)
{
	unsigned i = 0;

	while (i < TRACE_ERROR_CODES_MAX && sum->codes[i].count > 0 && sum->codes[i].code != code)
		i++;
	return i;
}

void trace_sum_add_code(struct trace_sum *sum, int32_t code, uint64_t count)
{
	unsigned i = slot_of(sum, code), others = slot_of(sum, INT32_MIN);

	if (i == TRACE_ERROR_CODES_MAX || (i == TRACE_CODES_MAX && others >= i)) {
		code = INT32_MIN;
		i = MIN(others, (unsigned)TRACE_CODES_MAX);
	}
	sum->codes[i].code = code;
	sum->codes[i].count += count;
}

/* @others: of its errors, how many are counted without their code. */
static void add_other_codes(struct sums *sums, struct sums_call *call, uint64_t others)
{
	if (others <= call->other_codes)
		return;
	trace_sum_add_code(sums->totals[call->call], INT32_MIN, others - call->other_codes);
	call->other_codes = others;
}

static int read_call(struct sums *sums, struct sums_process *process, struct sums_call *call)
{
	struct trace_stat_key key = { process->tgid, call->call, process->incarnation };
	struct trace_sum *total = sums->totals[call->call];
	struct trace_stat stat;
	uint64_t counted, nested;
	int r = sums->maps->stat(sums->maps_of, &key, &stat);

	if (r == 0)
		r = add_buckets(call, &stat, total);
	if (r < 0)
		return r;
	counted = grown(stat.count, call->count);
	nested = grown(stat.nested, call->nested);
	if (stat.errors > call->errors)
		sums->errors_grew = process->errors_grew = true;
	total->count += counted;
	total->nested += nested;
	total->errors += grown(stat.errors, call->errors);
	total->bytes += grown(stat.bytes, call->bytes);
	total->total_ns += grown(stat.total_ns, call->total_ns);
	total->last_ns = MAX(total->last_ns, (int64_t)stat.last_ns);
	call->count += counted;
	call->nested += nested;
	call->errors = MAX(call->errors, stat.errors);
	add_other_codes(sums, call, stat.other_codes);
	call->bytes = MAX(call->bytes, stat.bytes);
	call->total_ns = MAX(call->total_ns, stat.total_ns);
	call->last_ns = MAX(call->last_ns, (int64_t)stat.last_ns);
	if (counted || nested)
		sums->ops->hits(process, call->call, counted, nested, sums->userdata);
	return 0;
}

static void read_process(struct sums *sums, struct sums_process *process)
{
	for (uint16_t i = 0; i < process->calls_n; i++)
		read_call(sums, process, &process->calls[i]);
}

/* ---- error codes ---- */

static struct sums_code *code_of(struct sums_call *call, int32_t code)
{
	for (unsigned i = 0; i < call->codes_n; i++)
		if (call->codes[i].code == code)
			return &call->codes[i];
	if (!call->codes)
		call->codes = calloc(TRACE_CODES_MAX, sizeof(*call->codes));
	if (!call->codes || call->codes_n == TRACE_CODES_MAX)
		return NULL;
	call->codes[call->codes_n].code = code;
	return &call->codes[call->codes_n++];
}

/* Deletes an entry of a process that is not stored here, once it has ended. Nothing else would delete it. */
static void delete_unknown(struct sums *sums, const struct trace_error_key *key)
{
	struct trace_proc proc;
	int r = sums->maps->proc(sums->maps_of, key->tgid, &proc);

	if (r == -ENOENT || (r == 0 && proc.incarnation != key->incarnation))
		sums->maps->delete_error(sums->maps_of, key);
}

static void on_code(const struct trace_error_key *key, uint64_t count, void *userdata)
{
	struct sums *sums = userdata;
	struct sums_process *process = sums_find_exact(sums, key->tgid, key->incarnation);
	struct sums_call *call = NULL;
	struct sums_code *code;

	if (!process) {
		delete_unknown(sums, key);
		return;
	}
	for (uint16_t i = 0; i < process->calls_n && !call; i++)
		if (process->calls[i].call == key->call)
			call = &process->calls[i];
	code = call ? code_of(call, key->result) : NULL;
	if (code && count > code->count) {
		trace_sum_add_code(sums->totals[call->call], key->result, count - code->count);
		code->count = count;
	}
	if (process->codes_pending)
		sums->maps->delete_error(sums->maps_of, key);
}

static uint64_t without_code(const struct sums_call *call)
{
	uint64_t known = 0;

	for (unsigned i = 0; i < call->codes_n; i++)
		known += call->codes[i].count;
	return grown(call->errors, known);
}

/*
 * Counts errors whose code is unknown, also those whose entry was not read: several CPUs may have made more
 * than TRACE_CODES_MAX. Only for ended processes: the kernel side may just have counted a live one's error
 * but not yet its code. Called again if a call of an ended process is seen late.
 */
static void count_other_codes(struct sums *sums, struct sums_process *process)
{
	for (uint16_t i = 0; i < process->calls_n; i++)
		add_other_codes(sums, &process->calls[i], without_code(&process->calls[i]));
}

/* ---- processes ---- */

void sums_read_last(struct sums *sums, struct sums_process *process, struct sums_call *call)
{
	struct trace_stat_key key = { process->tgid, call->call, process->incarnation };

	read_call(sums, process, call);
	sums->maps->delete_stat(sums->maps_of, &key);
	process->codes_pending |= call->errors > 0;
	sums->codes_pending |= process->codes_pending;
}

void sums_process_ended(struct sums *sums, struct sums_process *process)
{
	if (process->ended)
		return;
	for (uint16_t i = 0; i < process->calls_n; i++)
		sums_read_last(sums, process, &process->calls[i]);
	process->ended = true;
	sums->ended_n++;
	/* If memory runs out, its codes count as others, and a late event adds another process. */
	hashmap_put(&sums->ended_by_incarnation, process->incarnation, process->index);
	if (sums_find(sums, process->tgid) == process)
		hashmap_del(&sums->live, process->tgid);
	sums->ops->ended(process, sums->userdata);
}

/* One walk for all processes: the map is large, and a thousand processes may end at once. */
static void read_codes(struct sums *sums)
{
	sums->maps->each_error(sums->maps_of, on_code, sums);
	for (uint32_t i = 0; i < sums->processes_n; i++) {
		struct sums_process *process = sums->processes[i];

		if (process->codes_pending)
			count_other_codes(sums, process);
		process->errors_grew = process->codes_pending = false;
	}
	sums->errors_grew = sums->codes_pending = false;
}

void sums_collect(struct sums *sums, const uint8_t active[TRACE_ACTIVE])
{
	sums_drop_shown(sums);
	for (uint32_t i = 0; i < sums->processes_n; i++) {
		struct sums_process *process = sums->processes[i];

		if (!process->ended && (!active || active[process->tgid % TRACE_ACTIVE]))
			read_process(sums, process);
	}
	if (sums->errors_grew || sums->codes_pending)
		read_codes(sums);
}

void sums_expand(const struct sums_call *call, struct trace_sum *ret_sum)
{
	unsigned n = call->codes_n;

	*ret_sum = (struct trace_sum){
		.call = call->call,
		.count = call->count,
		.errors = call->errors,
		.bytes = call->bytes,
		.total_ns = call->total_ns,
		.nested = call->nested,
		.last_ns = call->last_ns,
	};
	if (call->n > 0)
		memcpy(ret_sum->buckets + call->first, call->buckets, call->n * sizeof(*call->buckets));
	for (unsigned i = 0; i < n; i++) {
		ret_sum->codes[i].code = call->codes[i].code;
		ret_sum->codes[i].count = call->codes[i].count;
	}
	if (call->other_codes > 0) {
		ret_sum->codes[n].code = INT32_MIN;
		ret_sum->codes[n].count = call->other_codes;
	}
}
