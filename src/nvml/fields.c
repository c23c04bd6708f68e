// SPDX-License-Identifier: Apache-2.0
#include "nvml/column.h"
#include "nvml/report.h"

#include "base/clock.h"
#include "base/macro.h"

enum {
	QUERIES_MAX = 160,
	BATCH_MAX = 128, /* fields in one call */
};

enum decode {
	DECODE_PLAIN,
	DECODE_BER, /* NVLink 5: mantissa in bits 8..11, power of ten that divides it in bits 0..7 */
};

/* A field to ask, for one slot or for each index of a row (links). */
struct query {
	uint16_t field, row, slot;
	uint16_t count; /* indexes; 1: unscoped */
	uint16_t bit; /* its first bit in fields_off; one for each index */
	uint8_t cadence;
	uint8_t decode;
	bool scoped;
	uint8_t stamped; /* enum stamped; STAMPED_METRICS: nobody wants its time */
	uint16_t since; /* driver before which the number meant something else; 0: it never did */
	uint32_t scope;
	double scale;
	const struct query *instead_of; /* asked only where this one is not offered */
};

/*
 * Fields beyond those that metrics.def names: codes, and what newer links have in place of
 * the row's own field. Their rows' own `field` is 0 except for DECODE_PLAIN, where it is the one to prefer.
 */
static const struct {
	uint16_t row, field;
	uint8_t decode;
} further[] = {
	{ GPU_NVLINK_LINK_TX_BYTES, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, DECODE_PLAIN },
	{ GPU_NVLINK_LINK_RX_BYTES, NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, DECODE_PLAIN },
	{ GPU_NVLINK_LINK_BER_EFFECTIVE, NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, DECODE_BER },
	{ GPU_NVLINK_LINK_BER_SYMBOL, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, DECODE_BER },
};

static struct query queries[QUERIES_MAX];
static unsigned queries_n, bits_n;

/* One call's worth of fields and where their values go. */
struct batch {
	unsigned n;
	struct nvml_field_value values[BATCH_MAX];
	const struct query *queries[BATCH_MAX];
	uint16_t indexes[BATCH_MAX]; /* as asked: what the driver leaves in the value is not believed */
};
static struct batch batch;

static uint8_t stamped_of(const struct metric *metric)
{
	uint8_t i = 0;

	while (i < STAMPED_METRICS && stamped_rows[i].slot != metric->slot)
		i++;
	return i;
}

static struct query *add_query(unsigned row, uint16_t field)
{
	const struct metric *metric = &gpu_metrics[row];
	struct query *query;

	if (queries_n == QUERIES_MAX || bits_n + metric->count > FIELD_BITS)
		return NULL;
	query = &queries[queries_n++];
	*query = (struct query){
		.field = field,
		.row = (uint16_t)row,
		.slot = metric->slot,
		.count = metric->count,
		.bit = (uint16_t)bits_n,
		.cadence = (uint8_t)metric->cadence,
		.scoped = metric->count > 1,
		.stamped = stamped_of(metric),
		.since = nvml_columns[row].since,
		.scope = nvml_columns[row].scope,
		.scale = metric->scale == 0 ? 1 : metric->scale,
	};
	bits_n += metric->count;
	return query;
}

static void build_queries(void)
{
	const struct query *own[GPU_METRICS] = { NULL };

	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (nvml_columns[row].field)
			own[row] = add_query(row, nvml_columns[row].field);
	for (size_t i = 0; i < ARRAY_SIZE(further); i++) {
		struct query *query = add_query(further[i].row, further[i].field);

		if (!query)
			return;
		query->decode = further[i].decode;
		query->instead_of = own[further[i].row];
		if (query->instead_of)
			query->scale = 1; /* bytes, where the older field counts KiB */
	}
}

static bool is_off(const struct device *device, unsigned bit)
{
	return device->fields_off[bit / 64] >> bit % 64 & 1;
}

bool fields_has(const struct device *device, unsigned row)
{
	for (unsigned i = 0; i < queries_n; i++)
		if (queries[i].row == row)
			return !is_off(device, queries[i].bit);
	return false;
}

/* False for a type that NVML does not have. */
static bool decode_raw(const struct nvml_field_value *value, double *ret_raw, bool *ret_garbage)
{
	*ret_garbage = false;
	/* Driver 545 gives the memory's temperature another type than it has. */
	switch (value->field == NVML_FI_DEV_MEMORY_TEMP ? NVML_VALUE_TYPE_UNSIGNED_INT : value->value_type) {
	case NVML_VALUE_TYPE_DOUBLE:
		*ret_raw = value->value.as_double;
		return true;
	case NVML_VALUE_TYPE_UNSIGNED_INT:
		*ret_raw = value->value.as_uint;
		*ret_garbage = nvml_garbage_u32(value->value.as_uint);
		return true;
	case NVML_VALUE_TYPE_UNSIGNED_LONG:
	case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
		*ret_raw = (double)value->value.as_u64;
		*ret_garbage = nvml_garbage_u64(value->value.as_u64);
		return true;
	case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
		*ret_raw = (double)value->value.as_i64;
		*ret_garbage = nvml_garbage_u64((uint64_t)value->value.as_i64);
		return true;
	case NVML_VALUE_TYPE_SIGNED_INT:
		*ret_raw = value->value.as_int;
		*ret_garbage = nvml_garbage_u32((uint32_t)value->value.as_int);
		return true;
	case NVML_VALUE_TYPE_UNSIGNED_SHORT:
		*ret_raw = value->value.as_ushort;
		return true;
	default:
		return false;
	}
}

static double bit_error_ratio(double raw)
{
	uint64_t code = raw >= 0 && raw < 4096 ? (uint64_t)raw : 0;
	double ratio = (double)(code >> 8 & 0xf);

	for (unsigned i = 0; i < (code & 0xff); i++)
		ratio /= 10;
	return ratio;
}

static void store(struct reader *reader, struct device *device, const struct query *query, unsigned index,
		  const struct nvml_field_value *value, enum nvml_return result)
{
	unsigned slot = query->slot + index;
	double raw = 0;
	bool garbage = false;

	if (result == NVML_SUCCESS && value->value_type >= NVML_VALUE_TYPE_COUNT &&
	    value->field != NVML_FI_DEV_MEMORY_TEMP)
		reader_unrecognised(reader, "field %u with a value of type %u", value->field,
				    value->value_type);
	if (result == NVML_SUCCESS && (!decode_raw(value, &raw, &garbage) || garbage)) {
		reader_reject(reader, device, query->row, slot);
		return;
	}
	raw *= query->scale;
	if (query->decode == DECODE_BER)
		raw = bit_error_ratio(raw);
	reader_report(reader, device, query->row, slot, result, raw);
}

/* The newest time stamp; 0: there is none. */
static uint64_t newest_stamp(enum nvml_return overall)
{
	int64_t newest = 0;

	for (unsigned i = 0; overall == NVML_SUCCESS && i < batch.n; i++)
		if (batch.values[i].result == NVML_SUCCESS)
			newest = MAX(newest, batch.values[i].timestamp);
	return (uint64_t)newest;
}

static void queries_flush(struct reader *reader, struct device *device)
{
	int64_t begin_ns = clock_boot_ns();
	enum nvml_return overall;

	if (batch.n == 0)
		return;
	overall = NVML_CALL(reader, nvmlDeviceGetFieldValues, device->handle, (int)batch.n, batch.values);
	stamps_look(&device->clock, reader->pass, newest_stamp(overall), begin_ns, clock_boot_ns(), 0);
	for (unsigned i = 0; i < batch.n && !reader->lost && !reader->gone; i++) {
		const struct query *query = batch.queries[i];
		const struct nvml_field_value *value = &batch.values[i];
		enum nvml_return result = overall == NVML_SUCCESS ? value->result : overall;
		unsigned bit = query->bit + batch.indexes[i];

		if (value->field != query->field)
			continue; /* the driver wrote over what it was asked */
		store(reader, device, query, batch.indexes[i], value, result);
		if (query->stamped < STAMPED_METRICS)
			stamps_put(&device->clock, query->stamped,
				   result == NVML_SUCCESS ? (uint64_t)MAX(value->timestamp, INT64_C(0)) : 0);
		if (nvml_unsupported(result))
			device->fields_off[bit / 64] |= UINT64_C(1) << bit % 64;
		if (result == NVML_ERROR_GPU_IS_LOST)
			reader->lost = true;
	}
	batch.n = 0;
}

static void query_ask(struct reader *reader, struct device *device, const struct query *query, uint32_t scope)
{
	batch.values[batch.n] = (struct nvml_field_value){ .field = query->field, .scope = scope };
	batch.queries[batch.n] = query;
	batch.indexes[batch.n] = (uint16_t)(query->scoped ? scope : 0);
	if (++batch.n == BATCH_MAX)
		queries_flush(reader, device);
}

static void ask_indexes(struct reader *reader, struct device *device, const struct query *query)
{
	uint32_t n = query->count == C2C_LINKS_MAX ? device->c2c_links : device->nvlinks;

	for (uint32_t i = 0; i < MIN(n, (uint32_t)query->count); i++) {
		if (is_off(device, query->bit + i))
			continue;
		if (query->instead_of && !is_off(device, query->instead_of->bit + i))
			continue;
		query_ask(reader, device, query, i);
	}
}

void fields_read(struct reader *reader, struct device *device)
{
	const struct query *end;

	if (device->parent != READING_NONE)
		return;
	if (!queries_n)
		build_queries();
	end = queries + queries_n;
	batch.n = 0;
	for (const struct query *q = queries; q < end && !reader->lost && !reader->gone; q++) {
		/* A fallback must know how what it replaces was answered. */
		if (q->instead_of && q[-1].instead_of == NULL)
			queries_flush(reader, device);
		if (!device->due[q->cadence])
			continue;
		if (q->since > reader->driver)
			reader_report(reader, device, q->row, q->slot, NVML_ERROR_NOT_SUPPORTED, 0);
		else if (q->scoped)
			ask_indexes(reader, device, q);
		else if (!is_off(device, q->bit))
			query_ask(reader, device, q, q->scope);
	}
	queries_flush(reader, device);
	if (device_has(device, SLOT_NVLINK_LINKS))
		device->nvlinks = (uint32_t)device->entity->v[SLOT_NVLINK_LINKS];
}

uint32_t fields_links(struct reader *reader, struct nvml_device *handle, uint16_t field)
{
	struct nvml_field_value value = { .field = field };
	double raw;
	bool garbage;

	if (NVML_CALL(reader, nvmlDeviceGetFieldValues, handle, 1, &value) != NVML_SUCCESS ||
	    value.result != NVML_SUCCESS || !decode_raw(&value, &raw, &garbage) || garbage ||
	    !(raw >= 0 && raw <= NVLINKS_MAX))
		return 0;
	return (uint32_t)raw;
}
