// SPDX-License-Identifier: Apache-2.0
#include "trace/attach_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/fd.h"
#include "bpf/unwind.h"
#include "proc/capabilities.h"
#include "trace/probe.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

enum { BTF_PIECE = 16384 };

/*
 * Maximum entries of the hash maps. On kernels that have uprobe_multi, entries are allocated as they are
 * used, 2 KiB each in `stats`: 28 MiB of kernel memory for 1,000 processes of 14 calls, at most 64 MiB in
 * `stats` and as much in the others. Older kernels warn of such allocation in programs of this type
 * (check_map_prog_compatibility, kernel/bpf/verifier.c), so all entries are allocated at load there, some 45
 * MiB. A user or container can have 7/8 of a table (TRACE_SHARE), which must do for a node with one user.
 */
enum {
	/* As many as user space shows. Otherwise one owner's share would be all of these. */
	PROCS = TRACE_PROCESSES_MAX,
	THREADS_MULTI = 65536,
	STATS_MULTI = 32768,
	THREADS_EVENT = 32768,
	STATS_EVENT = 16384 / TRACE_SHARE * (TRACE_SHARE + 1),
	/*
	 * Of stacks, if they are recorded: threads that have one (7 KiB each), Python processes, what was
	 * sent.
	 */
	WALKS = 4096,
	PYTHONS = 4096,
	STACKS_SENT = 16384,
	CODES_SENT = 16384,
};

/*
 * The last warning of libbpf, which has the cause of a failed load. A global, since its callback has no
 * userdata.
 */
static _Thread_local char last_warning[160];

_printf_(2, 0) static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[sizeof(last_warning)];
	char *end;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	/* Keeps the first line: the verifier's log comes as one warning of many lines. */
	end = strchr(text, '\n');
	if (end)
		*end = '\0';
	memcpy(last_warning, text, sizeof(text));
	return 0;
}

void attach_error_set(struct attach_error *to, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(to->text, sizeof(to->text), format, args);
	va_end(args);
}

void attach_error_refused(struct attach_error *to, const char *what, int error)
{
	char why[sizeof(to->text) / 2];

	capability_refused(error, why, sizeof(why));
	attach_error_set(to, "%s (%s), though no capability is missing: %s", what, strerror(-error), why);
}

bool attach_sys_is_missing(void)
{
	return access("/sys/kernel", F_OK) < 0 && errno == ENOENT;
}

bool attach_kernel_has_multi(void)
{
	/* of enum bpf_attach_type; strings in BTF are separated by NULs */
	static const char name[] = "\0BPF_TRACE_UPROBE_MULTI";
	_cleanup_close_ int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	char buf[BTF_PIECE + sizeof(name)];
	size_t kept = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf + kept, BTF_PIECE)) > 0) {
		size_t length = kept + (size_t)n;

		if (memmem(buf, length, name, sizeof(name)))
			return true;
		kept = MIN(length, sizeof(name) - 1);
		memmove(buf, buf + length - kept, kept);
	}
	return false;
}

const char *attach_why_events(void)
{
	return attach_kernel_has_multi() ? "probes are trace events where uprobe_multi is not used" :
					   "this kernel has no uprobe_multi";
}

unsigned attach_needs(bool no_multi)
{
	if (access(KERNEL_BTF, R_OK) < 0)
		return 0;
	return !no_multi && attach_kernel_has_multi() ? CAPABILITY_FOR(MULTI) : CAPABILITY_FOR(EVENT);
}

int attach_may(const struct attach_config *config, struct attach_error *ret_error)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	unsigned needs;

	if (attach_sys_is_missing()) {
		attach_error_set(ret_error, ATTACH_SYS_MISSING "; " ATTACH_SYS_REMEDY);
		return -ENOENT;
	}
	if (access(KERNEL_BTF, R_OK) < 0) {
		attach_error_set(ret_error,
				 "the kernel has no BTF (" KERNEL_BTF
				 ": %s); tracing needs a kernel built with "
				 "CONFIG_DEBUG_INFO_BTF",
				 strerror(errno));
		return -ENOENT;
	}
	needs = attach_needs(config->no_multi);
	if (capability_lacks(needs, lacks) == 0)
		return 0;
	if (needs == CAPABILITY_FOR(EVENT))
		attach_error_set(ret_error, "%s, and %s; %s", lacks[0].cause, attach_why_events(),
				 lacks[0].remedy);
	else
		attach_error_set(ret_error, "%s; %s", lacks[0].cause, lacks[0].remedy);
	return -EPERM;
}

static uint32_t either(uint32_t wanted, uint32_t otherwise)
{
	return wanted ? wanted : otherwise;
}

static void set_sizes(struct bpf_object *object, bool multi, const struct attach_config *config)
{
	uint32_t stats = either(config->stats, multi ? STATS_MULTI : STATS_EVENT);
	const struct {
		const char *map;
		uint32_t entries;
		bool hash;
	} sizes[] = {
		{ "threads", either(config->threads, multi ? THREADS_MULTI : THREADS_EVENT), true },
		{ "layers", either(config->layered_threads, 1), true },
		{ "nests", either(config->nested_threads, 1), true },
		{ "operators", either(config->operators, 1), true },
		{ "edges", config->operators ? TRACE_EDGES : 1, false },
		{ "node_types", config->operators ? TRACE_NODE_TYPES : 1, false },
		{ "specs", either(config->calls, probe_calls_max()), false },
		{ "procs", either(config->procs, PROCS), true },
		{ "stats", stats, true },
		{ "errors", stats, true },
		{ "shares", TRACE_OWNERS, true },
		{ "walks", config->stacks ? WALKS : 1, true },
		{ "pythons", config->stacks || config->python ? PYTHONS : 1, true },
		{ "python_threads",
		  config->python ? either(config->threads, multi ? THREADS_MULTI : THREADS_EVENT) : 1, true },
		{ "stacks", config->stacks ? STACKS_SENT : 1, false },
		{ "codes", config->stacks ? CODES_SENT : 1, false },
		{ "spaces", config->native ? UNWIND_SPACES : 1, true },
		{ "areas", config->native ? UNWIND_AREAS : 1, false },
		{ "rows", config->native ? UNWIND_ROWS : 1, false },
		{ "rules", config->native ? UNWIND_RULES : 1, false },
		{ "events", config->ring_bytes, false },
		{ "sites", ATTACH_SITES_MAX, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, sizes[i].map);

		if (!map)
			continue;
		bpf_map__set_max_entries(map, sizes[i].entries);
		if (multi && sizes[i].hash)
			bpf_map__set_map_flags(map, BPF_F_NO_PREALLOC);
	}
}

/* What the verifier knows as constants (bpf/stack_maps.h). */
static int set_constants(struct bpf_object *object, const struct attach_config *config)
{
	uint32_t takes_stacks = config->stacks;

	return bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata.stacks"),
					  &takes_stacks, sizeof(takes_stacks));
}

static struct bpf_object *open_object(const struct attach_way *way)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "gpusonde");
	struct bpf_object *object = bpf_object__open_mem(way->object, way->object_n, &opts);
	struct bpf_program *program;

	if (!object || !way->multi)
		return object;
	bpf_object__for_each_program(program, object) if (bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
		bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)ATTACH_UPROBE_MULTI);
	return object;
}

static void program_leave_out(struct bpf_object *object, const char *program, bool unused)
{
	bpf_program__set_autoload(bpf_object__find_program_by_name(object, program), !unused);
}

/* Whether the load was refused by permissions. A refusal by the verifier has a better message. */
static bool is_refusal(int r)
{
	return r == -EPERM || r == -ENOSYS || capability_locked_down();
}

int attach_load(struct attach_backend *backend, const struct attach_config *config,
		struct attach_error *ret_error)
{
	libbpf_print_fn_t before = libbpf_set_print(keep_warning);
	struct bpf_object *object;
	int r = 0;

	last_warning[0] = '\0';
	object = open_object(backend->way);
	if (object) {
		set_sizes(object, backend->way->multi, config);
		r = set_constants(object, config);
		program_leave_out(object, "task_switch", !config->python);
		/* The verifier takes its time with these two, and next to none with the others. */
		program_leave_out(object, "call_entry", config->only_empty);
		program_leave_out(object, "call_return", config->only_empty);
		if (r == 0)
			r = bpf_object__load(object);
	}
	if (!object || r < 0) {
		r = object ? r : -errno;
		if (is_refusal(r))
			attach_error_refused(ret_error, "the kernel refuses the tracing programs", r);
		else
			attach_error_set(ret_error, "the kernel refuses the tracing programs (%s): %s%s%s",
					 backend->way->name, strerror(-r), last_warning[0] ? "; " : "",
					 last_warning);
	}
	libbpf_set_print(before);
	backend->programs[0] = object;
	return r;
}

/* A constant is as in the first object, but for the salt. */
static int share_constant(struct bpf_map *map, const struct bpf_object *first, uint32_t salt)
{
	size_t n;
	const void *value =
		bpf_map__initial_value(bpf_object__find_map_by_name(first, bpf_map__name(map)), &n);

	if (strcmp(bpf_map__name(map), ".rodata.salt") == 0)
		return bpf_map__set_initial_value(map, &salt, sizeof(salt));
	return value ? bpf_map__set_initial_value(map, value, n) : -ENOENT;
}

/* Uses the maps of the first object. */
static int share_maps(struct attach_backend *backend, struct bpf_object *object, uint32_t salt)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		int r = bpf_map__is_internal(map) ?
				share_constant(map, backend->programs[0], salt) :
				bpf_map__reuse_fd(map, attach_map_fd(backend, bpf_map__name(map)));

		if (r < 0)
			return r;
	}
	return 0;
}

int attach_load_salt(struct attach_backend *backend, uint32_t salt)
{
	libbpf_print_fn_t before;
	struct bpf_program *program;
	struct bpf_object *object;
	int r;

	if (salt >= ATTACH_SALTS_MAX)
		return -ENOSPC;
	if (backend->programs[salt])
		return 0;
	object = open_object(backend->way);
	if (!object)
		return -errno;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, strcmp(bpf_program__name(program), "call_entry") == 0);
	before = libbpf_set_print(keep_warning);
	r = share_maps(backend, object, salt);
	if (r == 0)
		r = bpf_object__load(object);
	libbpf_set_print(before);
	if (r < 0) {
		bpf_object__close(object);
		return r;
	}
	backend->programs[salt] = object;
	return 0;
}

int attach_program(const struct attachment *attachment, uint32_t salt)
{
	static const char *const names[2][2] = { { "call_entry", "call_return" },
						 { "empty_entry", "empty_return" } };

	return bpf_program__fd(bpf_object__find_program_by_name(
		attachment->backend->programs[salt], names[attachment->empty][attachment->returns]));
}
