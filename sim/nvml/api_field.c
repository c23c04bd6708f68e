// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include "sim/nvml/counters.h"

/*
 * Field values, one number each. The functions below are tried in turn; the first that
 * knows the field sets its value.
 */
struct answer {
	enum nvml_value_type type;
	uint64_t value;
};

/*
 * Whether the field is this function's; then *ret_result is NVML_SUCCESS and the answer is set, or why
 * there is none.
 */
typedef bool field_fn(const struct call *call, uint32_t field, uint32_t scope, struct answer *answer,
		      enum nvml_return *ret_result);

static bool answer_u32(struct answer *answer, uint64_t value)
{
	answer->type = NVML_VALUE_TYPE_UNSIGNED_INT;
	answer->value = value;
	return true;
}

static bool answer_u64(struct answer *answer, uint64_t value)
{
	answer->type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	answer->value = value;
	return true;
}

static bool refuse(enum nvml_return *ret_result, enum nvml_return result)
{
	*ret_result = result;
	return true;
}

/* Errors of memory: totals, then for each place a pair of corrected and uncorrected ones. */
static const struct {
	uint16_t corrected, uncorrected; /* 0: there is no such field */
	uint32_t counter, location;
} ecc_fields[] = {
	{ NVML_FI_DEV_ECC_SBE_VOL_L1, NVML_FI_DEV_ECC_DBE_VOL_L1, NVML_VOLATILE_ECC,
	  NVML_MEMORY_LOCATION_L1_CACHE },
	{ NVML_FI_DEV_ECC_SBE_VOL_L2, NVML_FI_DEV_ECC_DBE_VOL_L2, NVML_VOLATILE_ECC,
	  NVML_MEMORY_LOCATION_L2_CACHE },
	{ NVML_FI_DEV_ECC_SBE_VOL_DEV, NVML_FI_DEV_ECC_DBE_VOL_DEV, NVML_VOLATILE_ECC,
	  NVML_MEMORY_LOCATION_DRAM },
	{ NVML_FI_DEV_ECC_SBE_VOL_REG, NVML_FI_DEV_ECC_DBE_VOL_REG, NVML_VOLATILE_ECC,
	  NVML_MEMORY_LOCATION_REGISTER_FILE },
	{ NVML_FI_DEV_ECC_SBE_VOL_TEX, NVML_FI_DEV_ECC_DBE_VOL_TEX, NVML_VOLATILE_ECC,
	  NVML_MEMORY_LOCATION_TEXTURE_MEMORY },
	{ 0, NVML_FI_DEV_ECC_DBE_VOL_CBU, NVML_VOLATILE_ECC, NVML_MEMORY_LOCATION_CBU },
	{ NVML_FI_DEV_ECC_SBE_AGG_L1, NVML_FI_DEV_ECC_DBE_AGG_L1, NVML_AGGREGATE_ECC,
	  NVML_MEMORY_LOCATION_L1_CACHE },
	{ NVML_FI_DEV_ECC_SBE_AGG_L2, NVML_FI_DEV_ECC_DBE_AGG_L2, NVML_AGGREGATE_ECC,
	  NVML_MEMORY_LOCATION_L2_CACHE },
	{ NVML_FI_DEV_ECC_SBE_AGG_DEV, NVML_FI_DEV_ECC_DBE_AGG_DEV, NVML_AGGREGATE_ECC,
	  NVML_MEMORY_LOCATION_DRAM },
	{ NVML_FI_DEV_ECC_SBE_AGG_REG, NVML_FI_DEV_ECC_DBE_AGG_REG, NVML_AGGREGATE_ECC,
	  NVML_MEMORY_LOCATION_REGISTER_FILE },
	{ NVML_FI_DEV_ECC_SBE_AGG_TEX, NVML_FI_DEV_ECC_DBE_AGG_TEX, NVML_AGGREGATE_ECC,
	  NVML_MEMORY_LOCATION_TEXTURE_MEMORY },
	{ 0, NVML_FI_DEV_ECC_DBE_AGG_CBU, NVML_AGGREGATE_ECC, NVML_MEMORY_LOCATION_CBU },
};

static uint64_t ecc_sum(const struct call *call, enum counter_kind kind, uint32_t counter)
{
	uint64_t before = 0;

	if (counter == NVML_VOLATILE_ECC)
		before = gpu_count(call->gpu, kind, call->gpu->driver_ms);
	return gpu_count(call->gpu, kind, call->now_ms) - before;
}

static bool ecc_place(const struct call *call, uint32_t field, struct answer *answer)
{
	for (size_t i = 0; i < ARRAY_SIZE(ecc_fields); i++) {
		enum counter_kind kind =
			field == ecc_fields[i].corrected ? COUNTER_ECC_CORRECTED : COUNTER_ECC_UNCORRECTED;
		int64_t from_ms = ecc_fields[i].counter == NVML_VOLATILE_ECC ? call->gpu->driver_ms : -1;
		uint64_t count;

		if (field != ecc_fields[i].corrected && field != ecc_fields[i].uncorrected)
			continue;
		count = gpu_count_at(call->gpu, kind, ecc_fields[i].location, call->now_ms);
		if (from_ms >= 0)
			count -= gpu_count_at(call->gpu, kind, ecc_fields[i].location, from_ms);
		return answer_u64(answer, count);
	}
	return false;
}

static bool ecc_field(const struct call *call, uint32_t field, _unused_ uint32_t scope, struct answer *answer,
		      enum nvml_return *ret_result)
{
	if (field < NVML_FI_DEV_ECC_CURRENT || field > NVML_FI_DEV_ECC_DBE_AGG_CBU)
		return false;
	if (!call->gpu->what->model.ecc)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	switch (field) {
	case NVML_FI_DEV_ECC_CURRENT:
	case NVML_FI_DEV_ECC_PENDING:
		return answer_u32(answer, NVML_FEATURE_ENABLED);
	case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
		return answer_u64(answer, ecc_sum(call, COUNTER_ECC_CORRECTED, NVML_VOLATILE_ECC));
	case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
		return answer_u64(answer, ecc_sum(call, COUNTER_ECC_UNCORRECTED, NVML_VOLATILE_ECC));
	case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
		return answer_u64(answer, ecc_sum(call, COUNTER_ECC_CORRECTED, NVML_AGGREGATE_ECC));
	case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
		return answer_u64(answer, ecc_sum(call, COUNTER_ECC_UNCORRECTED, NVML_AGGREGATE_ECC));
	default:
		return ecc_place(call, field, answer);
	}
}

static bool repair_field(const struct call *call, uint32_t field, _unused_ uint32_t scope,
			 struct answer *answer, enum nvml_return *ret_result)
{
	const struct scenario_gpu *what = call->gpu->what;
	bool retired = field >= NVML_FI_DEV_RETIRED_SBE && field <= NVML_FI_DEV_RETIRED_PENDING;
	bool remapped = field >= NVML_FI_DEV_REMAPPED_COR && field <= NVML_FI_DEV_REMAPPED_FAILURE;

	retired |= field == NVML_FI_DEV_RETIRED_PENDING_SBE || field == NVML_FI_DEV_RETIRED_PENDING_DBE;
	if (!retired && !remapped)
		return false;
	if ((retired && !what->model.retired_pages) || (remapped && !what->model.row_remapping))
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	switch (field) {
	case NVML_FI_DEV_RETIRED_SBE:
		return answer_u64(answer, gpu_count(call->gpu, COUNTER_RETIRED_SINGLE_BIT, call->now_ms));
	case NVML_FI_DEV_RETIRED_DBE:
		return answer_u64(answer, gpu_count(call->gpu, COUNTER_RETIRED_DOUBLE_BIT, call->now_ms));
	case NVML_FI_DEV_REMAPPED_COR:
		return answer_u32(answer, gpu_count(call->gpu, COUNTER_REMAPPED_CORRECTABLE, call->now_ms));
	case NVML_FI_DEV_REMAPPED_UNC:
		return answer_u32(answer, gpu_count(call->gpu, COUNTER_REMAPPED_UNCORRECTABLE, call->now_ms));
	case NVML_FI_DEV_REMAPPED_PENDING:
		return answer_u32(answer, what->remap_pending);
	case NVML_FI_DEV_REMAPPED_FAILURE:
		return answer_u32(answer, what->remap_failed);
	case NVML_FI_DEV_RETIRED_PENDING_SBE:
		return answer_u32(answer, 0);
	default:
		return answer_u32(answer, what->retire_pending);
	}
}

static bool power_field(const struct call *call, uint32_t field, uint32_t scope, struct answer *answer,
			enum nvml_return *ret_result)
{
	const struct model *model = &call->gpu->what->model;
	struct totals totals;

	if (field == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || field == NVML_FI_DEV_ENERGY) {
		if (!model->energy)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		call_totals(call, &totals);
		return answer_u64(answer, totals.energy_uj / 1000);
	}
	if (field < NVML_FI_DEV_POWER_AVERAGE || field > NVML_FI_DEV_POWER_REQUESTED_LIMIT)
		return false;
	if (scope != NVML_POWER_SCOPE_GPU)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	switch (field) {
	case NVML_FI_DEV_POWER_AVERAGE:
	case NVML_FI_DEV_POWER_INSTANT:
		return answer_u32(answer, gpu_now(call->gpu)->power_mw);
	case NVML_FI_DEV_POWER_MIN_LIMIT:
		return answer_u32(answer, model->limit_min_mw);
	case NVML_FI_DEV_POWER_MAX_LIMIT:
		return answer_u32(answer, model->limit_max_mw);
	case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
		return answer_u32(answer, model_find(model->id)->limit_mw);
	default:
		return answer_u32(answer, model->limit_mw);
	}
}

static bool thermal_field(const struct call *call, uint32_t field, _unused_ uint32_t scope,
			  struct answer *answer, enum nvml_return *ret_result)
{
	const struct model *model = &call->gpu->what->model;

	switch (field) {
	case NVML_FI_DEV_MEMORY_TEMP:
		if (!model->memory_temperature)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		return answer_u32(answer, memory_temperature_c(call));
	case NVML_FI_DEV_GPU_TEMP:
		return answer_u32(answer, temperature_c(call));
	case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
	case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
	case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
	case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
		/* Relative to the limit where clocks fall, and negative beyond it. */
		if (model->architecture < NVML_DEVICE_ARCH_HOPPER)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		answer->type = NVML_VALUE_TYPE_SIGNED_INT;
		answer->value = (uint32_t)(field == NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT ?
						   model->slowdown_c - model->shutdown_c :
						   0);
		return true;
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN:
		return answer_u64(answer, reason_ns(call, NVML_CLOCKS_EVENT_REASON_SW_THERMAL_SLOWDOWN));
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN:
		return answer_u64(answer, reason_ns(call, NVML_CLOCKS_EVENT_REASON_HW_THERMAL_SLOWDOWN));
	case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN:
		return answer_u64(answer, reason_ns(call, NVML_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN));
	default:
		break;
	}
	if (field < NVML_FI_DEV_PERF_POLICY_POWER || field > NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS)
		return false;
	if (!model->ecc)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	if (field >= NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS)
		return answer_u64(answer,
				  violation_ns(call, field - NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS +
							     NVML_PERF_POLICY_TOTAL_APP_CLOCKS));
	return answer_u64(answer, violation_ns(call, field - NVML_FI_DEV_PERF_POLICY_POWER));
}

static bool pcie_field(const struct call *call, uint32_t field, _unused_ uint32_t scope,
		       struct answer *answer, enum nvml_return *ret_result)
{
	bool counted = call->gpu->what->model.counted_pcie;
	struct totals totals;

	switch (field) {
	case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
		return answer_u64(answer, gpu_count(call->gpu, COUNTER_PCIE_REPLAY, call->now_ms));
	case NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER:
		return answer_u64(answer, 0);
	case NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
	case NVML_FI_DEV_PCIE_COUNT_RX_BYTES:
		if (!counted)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		call_totals(call, &totals);
		return answer_u64(answer,
				  totals.traffic[field == NVML_FI_DEV_PCIE_COUNT_TX_BYTES ? TRAFFIC_PCIE_TX :
											    TRAFFIC_PCIE_RX]);
	case NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER:
		return answer_u64(answer, 1);
	case NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS:
	case NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED:
		if (!counted)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		return answer_u64(answer, gpu_count(call->gpu, COUNTER_PCIE_REPLAY, call->now_ms));
	default:
		break;
	}
	if (field < NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR || field > NVML_FI_DEV_PCIE_COUNT_LANE_ERROR)
		return false;
	return counted ? answer_u64(answer, 0) : refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
}

/* Error counters of single links: two runs of ids, for links 0 to 5 and 6 to 11, and one for all. */
static const struct {
	uint16_t first, more, total;
	enum counter_kind kind;
} link_error_fields[] = {
	{ NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
	  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, COUNTER_NVLINK_CRC_FLIT },
	{ NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6,
	  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, COUNTER_NVLINK_CRC_DATA },
	{ NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6,
	  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, COUNTER_NVLINK_REPLAY },
	{ NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6,
	  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, COUNTER_NVLINK_RECOVERY },
	{ NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L6,
	  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, COUNTER_NVLINK_ECC_DATA },
};

enum { LINKS_PER_RUN = 6 };

static bool link_error_field(const struct call *call, uint32_t field, _unused_ uint32_t scope,
			     struct answer *answer, enum nvml_return *ret_result)
{
	for (size_t i = 0; i < ARRAY_SIZE(link_error_fields); i++) {
		uint32_t link = UINT32_MAX;

		if (field - link_error_fields[i].first < LINKS_PER_RUN)
			link = field - link_error_fields[i].first;
		else if (field - link_error_fields[i].more < LINKS_PER_RUN)
			link = field - link_error_fields[i].more + LINKS_PER_RUN;
		else if (field != link_error_fields[i].total)
			continue;
		if (call->gpu->what->model.nvlinks == 0 || (link != UINT32_MAX && link >= active_links(call)))
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		return answer_u64(answer, link_errors(call, link, link_error_fields[i].kind));
	}
	return false;
}

/* What a link is like: fields that take the link as their scope. */
static bool link_state(const struct call *call, uint32_t field, uint32_t link, struct answer *answer,
		       enum nvml_return *ret_result)
{
	const struct model *model = &call->gpu->what->model;
	bool active = link < active_links(call);

	if (link >= model->nvlinks)
		return refuse(ret_result, NVML_ERROR_INVALID_ARGUMENT);
	if (field == NVML_FI_DEV_NVLINK_GET_STATE)
		return answer_u32(answer, active ? NVML_NVLINK_STATE_ACTIVE : NVML_NVLINK_STATE_INACTIVE);
	if (!active)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	switch (field) {
	case NVML_FI_DEV_NVLINK_GET_SPEED:
		return answer_u32(answer, model->nvlink_mbps);
	case NVML_FI_DEV_NVLINK_GET_VERSION:
		return answer_u32(answer, model->nvlink_version);
	case NVML_FI_DEV_NVLINK_GET_POWER_STATE:
		return answer_u32(answer, 0);
	default:
		return answer_u64(answer, link_errors(call, link,
						      field == NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY ?
							      COUNTER_NVLINK_REPLAY :
						      field == NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY ?
							      COUNTER_NVLINK_RECOVERY :
							      COUNTER_NVLINK_CRC_FLIT));
	}
}

/* KiB of one link, or of all of them. */
static bool throughput(const struct call *call, uint32_t field, uint32_t scope, struct answer *answer,
		       enum nvml_return *ret_result)
{
	bool tx = field == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX ||
		  field == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX;
	bool raw = field == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX ||
		   field == NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX;
	uint64_t bytes = link_bytes(call, tx ? TRAFFIC_NVLINK_TX : TRAFFIC_NVLINK_RX);

	/* With the fifth generation others took their place. */
	if (call->gpu->what->model.nvlink_version >= NVML_NVLINK_VERSION_5_0)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	if (scope == UINT32_MAX)
		bytes *= active_links(call);
	else if (scope >= active_links(call))
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	/* Headers cost an eighth. */
	return answer_u64(answer, (raw ? bytes + bytes / 8 : bytes) / 1024);
}

/*
 * NVLink of the fifth generation counts bytes and packets of each link, and what went wrong in the terms of
 * its physical layer.
 */
static bool link5_field(const struct call *call, uint32_t field, uint32_t scope, struct answer *answer,
			enum nvml_return *ret_result)
{
	const uint32_t packet_bytes = 256;
	uint32_t first = scope == UINT32_MAX ? 0 : scope,
		 links = scope == UINT32_MAX ? active_links(call) : 1;
	bool counted = field >= NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS &&
		       field <= NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER;
	bool history = field >= NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 &&
		       field <= NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15;

	if (!counted && !history)
		return false;
	if (call->gpu->what->model.nvlink_version < NVML_NVLINK_VERSION_5_0 || first >= active_links(call))
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	switch (field) {
	case NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES:
		return answer_u64(answer, links * link_bytes(call, TRAFFIC_NVLINK_TX));
	case NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES:
		return answer_u64(answer, links * link_bytes(call, TRAFFIC_NVLINK_RX));
	case NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS:
		return answer_u64(answer, links * link_bytes(call, TRAFFIC_NVLINK_TX) / packet_bytes);
	case NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS:
		return answer_u64(answer, links * link_bytes(call, TRAFFIC_NVLINK_RX) / packet_bytes);
	case NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0:
		/* Blocks in which nothing had to be corrected: nearly all. */
		return answer_u64(answer, links * link_bytes(call, TRAFFIC_NVLINK_RX) / packet_bytes);
	case NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_1:
	case NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS:
		return answer_u64(answer, link_errors(call, scope, COUNTER_NVLINK_CRC_FLIT));
	case NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS:
	case NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS:
		return answer_u64(answer, link_errors(call, scope, COUNTER_NVLINK_RECOVERY));
	default:
		return answer_u64(answer, 0);
	}
}

static bool link_field(const struct call *call, uint32_t field, uint32_t scope, struct answer *answer,
		       enum nvml_return *ret_result)
{
	const struct model *model = &call->gpu->what->model;
	bool speed =
		(field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 &&
		 field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON) ||
		(field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 && field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L11);
	bool moved = field >= NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX &&
		     field <= NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX;
	bool state =
		field >= NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY && field <= NVML_FI_DEV_NVLINK_GET_POWER_STATE;

	if (!speed && !moved && !state && field != NVML_FI_DEV_NVLINK_LINK_COUNT &&
	    field != NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID &&
	    field != NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT)
		return false;
	if (model->nvlinks == 0)
		return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	if (field == NVML_FI_DEV_NVLINK_LINK_COUNT)
		return answer_u32(answer, model->nvlinks);
	if (field == NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT)
		return answer_u32(answer, model->switched ? active_links(call) : 0);
	if (field == NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID)
		return scope < active_links(call) ? answer_u32(answer, scope) :
						    refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
	if (speed)
		return answer_u32(answer, model->nvlink_mbps);
	return moved ? throughput(call, field, scope, answer, ret_result) :
		       link_state(call, field, scope, answer, ret_result);
}

static bool other_field(const struct call *call, uint32_t field, _unused_ uint32_t scope,
			struct answer *answer, enum nvml_return *ret_result)
{
	const struct model *model = &call->gpu->what->model;

	switch (field) {
	case NVML_FI_DEV_C2C_LINK_COUNT:
		return answer_u32(answer, 0);
	case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
	case NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE:
		return answer_u32(answer,
				  model->mig_slices > 0 && model->architecture >= NVML_DEVICE_ARCH_HOPPER);
	case NVML_FI_DEV_RESET_STATUS:
	case NVML_FI_DEV_DRAIN_AND_RESET_STATUS:
		return answer_u32(answer, call->gpu->what->remap_pending);
	case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION:
		if (!model->ecc)
			return refuse(ret_result, NVML_ERROR_NOT_SUPPORTED);
		return answer_u32(answer, call->gpu->what->remap_pending);
	default:
		return false;
	}
}

static enum nvml_return get_field(const struct call *call, uint32_t field, uint32_t scope,
				  struct answer *answer)
{
	static field_fn *const readers[] = {
		ecc_field,        repair_field, power_field, thermal_field, pcie_field,
		link_error_field, link5_field,  link_field,  other_field,
	};
	enum nvml_return result = NVML_SUCCESS;

	if (!generation_has_field(call_node()->scenario->generation, field))
		return NVML_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (readers[i](call, field, scope, answer, &result))
			return result;
	}
	return NVML_ERROR_NOT_SUPPORTED;
}

enum nvml_return nvmlDeviceGetFieldValues(struct nvml_device *device, int count,
					  struct nvml_field_value *values)
{
	CALL(nvmlDeviceGetFieldValues, device);

	NEED(values && count > 0);
	for (int i = 0; i < count; i++) {
		struct answer answer = { .type = NVML_VALUE_TYPE_UNSIGNED_INT };
		struct nvml_field_value *value = &values[i];

		value->result = get_field(call, value->field, value->scope, &answer);
		value->timestamp = (int64_t)stamp_us(call->now_ms + sample_skew_ms(call->gpu));
		value->latency_us = 1;
		value->value_type = answer.type;
		if (value->field == call_generation()->strange_field)
			value->value_type = call_generation()->strange_type;
		value->value.as_u64 = 0;
		if (value->result != NVML_SUCCESS)
			continue;
		if (answer.type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
			value->value.as_u64 = falsify_field(call, value->field, answer.value, 8);
		else
			value->value.as_uint = (uint32_t)falsify_field(call, value->field, answer.value, 4);
	}
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceClearFieldValues(struct nvml_device *device, int count,
					    struct nvml_field_value *values)
{
	CALL(nvmlDeviceClearFieldValues, device);

	NEED(values && count > 0);
	return NVML_ERROR_NOT_SUPPORTED;
}
