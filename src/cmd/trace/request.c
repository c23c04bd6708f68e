// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/request.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "cmd/trace/stacks.h"

#define TIME_MIN_S 0.1
#define TIME_MAX_S (7 * 86400.0)

static const char *command_name = "trace";

const char *trace_command_name(void)
{
	return command_name;
}

static int parse_pid(const char *text, pid_t *ret_pid)
{
	uint64_t pid;

	if (parse_u64(text, &pid) < 0 || pid == 0 || pid > INT32_MAX) {
		fprintf(stderr, "gpusonde %s: --pid cannot be \"%s\": it must be a process ID\n",
			trace_command_name(), text);
		return -EINVAL;
	}
	*ret_pid = (pid_t)pid;
	return 0;
}

/* False: invalid. Not given: @ret_ns is left as it is. */
static bool parse_time(const struct invocation *inv, enum flag_id flag, int64_t *ret_ns)
{
	const char *text = inv->flag[flag];

	if (!text || parse_seconds_ns(text, TIME_MIN_S, TIME_MAX_S, ret_ns) == 0)
		return true;
	fprintf(stderr,
		"gpusonde %s: %s cannot be \"%s\": it must be a time from 100ms to 7d, such as 10s or "
		"2m\n",
		trace_command_name(), flag == FLAG_DURATION ? "--duration" : "--interval", text);
	return false;
}

static bool is_contradictory(const struct invocation *inv)
{
	const char *why = NULL;

	if (inv->argc > 0 && inv->operands_n == 0 && STRV_EQ(inv->argv[inv->argc - 1], "--"))
		why = "no command after --: add one, or leave out -- to trace running programs";
	else if (inv->flag[FLAG_PID] && inv->operands_n > 0)
		why = "give either a process (-p) or a command, not both";
	else if (inv->flag[FLAG_TOP] && inv->operands_n > 0)
		why = "--top works with running programs only: a command gets a summary at its end";
	else if (inv->flag[FLAG_TOP] && (inv->flag[FLAG_RAW] || inv->flag[FLAG_JSON]))
		why = "--top prints a table: leave out --top, or --raw and --json";
	else if (inv->flag[FLAG_KERNELS] && inv->flag[FLAG_RAW])
		why = "--kernels and --raw cannot be combined: leave out one of them";
	else if (inv->flag[FLAG_NCCL] && inv->flag[FLAG_RAW])
		why = "--raw has NCCL's calls, too: leave out --nccl";
	else if (inv->flag[FLAG_CUPTI] && inv->operands_n == 0)
		why = "--cupti needs a command: CUPTI must be in a program before it uses a GPU";
	else if (inv->flag[FLAG_CUPTI] && inv->flag[FLAG_RAW])
		why = "--raw prints calls: leave out --cupti, or use --timeline instead of --raw";
	else if (inv->flag[FLAG_FULL] && !inv->flag[FLAG_KERNELS])
		why = "--full needs --kernels, whose names it prints in full";
	else if (inv->flag[FLAG_DURATION] && inv->operands_n > 0)
		why = "--duration works with running programs only: tracing a command ends with it";
	else if (inv->flag[FLAG_INTERVAL] && inv->flag[FLAG_RAW])
		why = "--raw prints each event as it comes: leave out --interval";
	else if (inv->flag[FLAG_INTERVAL] && inv->operands_n > 0 && !inv->flag[FLAG_OUTPUT])
		why = "--interval with a command needs --output, since the terminal is the command's";
	else if (inv->flag[FLAG_FULL] && inv->flag[FLAG_JSON])
		why = "--full has no effect with --json, which always has full names: leave it out";
	else if (inv->flag[FLAG_WEIGHT] && !inv->flag[FLAG_STACKS])
		why = "--weight is of --stacks FILE.folded: add it, or leave out --weight";
	else if (inv->flag[FLAG_STACKS_OF] && !inv->flag[FLAG_STACKS])
		why = "--stacks-of is of --stacks: add it, or leave out --stacks-of";
	else if (inv->flag[FLAG_SAMPLE] && !inv->flag[FLAG_STACKS] && !inv->flag[FLAG_PYTHON])
		why = "--sample is of --stacks and --python: add one, or leave out --sample";
	if (why)
		fprintf(stderr, "gpusonde %s: %s\n", trace_command_name(), why);
	return why;
}

static bool parse_stacks(const struct invocation *inv, enum stack_weight *ret_weight)
{
	const char *path = inv->flag[FLAG_STACKS], *weight = inv->flag[FLAG_WEIGHT];
	enum trace_stacks_format format = TRACE_STACKS_FOLDED;

	if (path && !trace_stacks_format(path, &format)) {
		fprintf(stderr,
			"gpusonde %s: --stacks cannot be \"%s\": it must be a file whose name ends in "
			".folded, .pb.gz (pprof) or .html\n",
			trace_command_name(), path);
		return false;
	}
	if (weight && format != TRACE_STACKS_FOLDED) {
		fprintf(stderr,
			"gpusonde %s: --weight is of --stacks FILE.folded only: other files have all\n",
			trace_command_name());
		return false;
	}
	*ret_weight = STACK_LAUNCHES;
	if (!weight || (stack_weight_parse(weight, ret_weight) &&
			(*ret_weight != STACK_GPU_TIME || inv->flag[FLAG_KERNELS] || inv->flag[FLAG_TORCH])))
		return true;
	fprintf(stderr,
		"gpusonde %s: --weight cannot be \"%s\": it must be launches, bytes_copied, bytes_held, "
		"sync_wait, calls, or with --kernels gpu_time\n",
		trace_command_name(), weight);
	return false;
}

static bool parse_stack_kinds(const struct invocation *inv, unsigned *ret_kinds)
{
	static const struct {
		const char *name;
		unsigned kinds;
	} names[] = {
		{ "python", TRACE_STACK_PYTHON },
		{ "native", TRACE_STACK_NATIVE },
		{ "all", TRACE_STACK_PYTHON | TRACE_STACK_NATIVE },
	};
	/* --python alone wants lines of Python. */
	const char *text = inv->flag[FLAG_STACKS_OF] ? inv->flag[FLAG_STACKS_OF] :
			   inv->flag[FLAG_STACKS] || inv->command->use == USE_ANALYZE ? "all" :
											"python";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i].name) == 0) {
			*ret_kinds = names[i].kinds;
			return true;
		}
	fprintf(stderr, "gpusonde %s: --stacks-of cannot be \"%s\": it must be python, native or all\n",
		trace_command_name(), text);
	return false;
}

static bool parse_sample(const struct invocation *inv, struct trace_request *request)
{
	const char *text = inv->flag[FLAG_SAMPLE];
	uint64_t n;

	request->sample_auto = text && STRV_EQ(text, "auto");
	if (!text || request->sample_auto)
		return true;
	if (parse_u64(text, &n) == 0 && n >= 2 && n <= 1U << TRACE_FLAG_SAMPLED_BITS && (n & (n - 1)) == 0) {
		request->stack_shift = (unsigned)__builtin_ctzll(n);
		return true;
	}
	fprintf(stderr,
		"gpusonde %s: --sample cannot be \"%s\": it must be 2, 4, 8, ... 32768, or "
		"auto\n",
		trace_command_name(), text);
	return false;
}

bool trace_request_parse(const struct invocation *inv, struct trace_request *ret_request)
{
	struct trace_request request = { .interval_ns = NSEC_PER_SEC };

	command_name = inv->command->name;
	if (is_contradictory(inv) ||
	    (inv->flag[FLAG_PID] && parse_pid(inv->flag[FLAG_PID], &request.pid) < 0) ||
	    !parse_time(inv, FLAG_DURATION, &request.duration_ns) ||
	    !parse_time(inv, FLAG_INTERVAL, &request.interval_ns) || !parse_stacks(inv, &request.weight) ||
	    !parse_stack_kinds(inv, &request.stack_kinds) || !parse_sample(inv, &request) ||
	    !timeline_request_parse(inv, &request.timeline))
		return false;
	request.analyze = inv->command->use == USE_ANALYZE;
	/* Nobody has asked for stacks: they may cost what tracing may. */
	request.sample_auto |= request.analyze;
	request.table = !request.analyze && !inv->flag[FLAG_JSON] && !inv->flag[FLAG_RAW];
	request.live = request.table && (inv->flag[FLAG_TOP] || inv->flag[FLAG_INTERVAL]);
	request.series = inv->flag[FLAG_JSON] && inv->flag[FLAG_INTERVAL];
	*ret_request = request;
	return true;
}
