// SPDX-License-Identifier: Apache-2.0
#include "trace/attach.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "trace/attach_private.h"

/* From the cheapest to the one that the oldest kernels support. */
static const struct attach_way *const ways[] = {
	&attach_way_multi,
	&attach_way_event,
	&attach_way_event_old,
};

static size_t control_size(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct trace_control) + page - 1) / page * page;
}

static const struct {
	const char *program, *tracepoint;
} lives[ATTACH_LIVES] = {
	[ATTACH_LIFE_EXIT] = { "task_exit", "sched_process_exit" },
	[ATTACH_LIFE_EXEC] = { "task_exec", "sched_process_exec" },
	[ATTACH_LIFE_FORK] = { "task_fork", "sched_process_fork" },
	[ATTACH_LIFE_SWITCH] = { "task_switch", "sched_switch" },
};

static int watch_lives(struct attach_backend *backend, enum attach_life life)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(backend->programs[0], lives[life].program);

	backend->lives[life] = bpf_program__attach_raw_tracepoint(program, lives[life].tracepoint);
	return backend->lives[life] ? 0 : -errno;
}

/*
 * Sets own_tgid, this process's PID in the initial namespace, which only the kernel side sees in a container.
 */
static int set_own_tgid(struct attach_backend *backend)
{
	struct bpf_program *program = bpf_object__find_program_by_name(backend->programs[0], "own_tgid");
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(bpf_program__fd(program), &opts);
}

/* The kernel side refuses entries of tables without room. */
static int set_room(struct attach_backend *backend)
{
	static const char *const tables[TRACE_TABLES] = {
		[TRACE_TABLE_PROCS] = "procs",           [TRACE_TABLE_THREADS] = "threads",
		[TRACE_TABLE_LAYERS] = "layers",         [TRACE_TABLE_STATS] = "stats",
		[TRACE_TABLE_ERRORS] = "errors",         [TRACE_TABLE_OPERATORS] = "operators",
		[TRACE_TABLE_NESTS] = "nests",           [TRACE_TABLE_WALKS] = "walks",
		[TRACE_TABLE_PYTHON] = "python_threads",
	};
	struct trace_share share = { 0 };
	uint64_t rest = TRACE_OWNER_REST;

	for (size_t i = 0; i < TRACE_TABLES; i++) {
		const struct bpf_map *map = bpf_object__find_map_by_name(backend->programs[0], tables[i]);

		if (!map)
			return -ENOENT;
		backend->control->room[i].entries = (int32_t)bpf_map__max_entries(map);
	}
	return bpf_map_update_elem(attach_map_fd(backend, "shares"), &rest, &share, BPF_ANY) < 0 ? -errno : 0;
}

static int start(struct attach_backend *backend, struct attach_error *ret_error)
{
	void *control = mmap(NULL, control_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
			     attach_map_fd(backend, "control"), 0);
	int r;

	if (control == MAP_FAILED) {
		r = -errno;
		attach_error_set(ret_error, "the kernel side's control page cannot be mapped: %s",
				 strerror(-r));
		return r;
	}
	backend->control = control;
	r = set_room(backend);
	if (r == 0)
		r = set_own_tgid(backend);
	if (r < 0) {
		attach_error_set(ret_error, "the kernel side does not run: %s", strerror(-r));
		return r;
	}
	if (backend->control->version != TRACE_VERSION) {
		attach_error_set(ret_error,
				 "the kernel side is of another version (%u, not %d): build gpusonde again",
				 backend->control->version, TRACE_VERSION);
		return -EPROTO;
	}
	/* The kernel side drops the state of a process when it ends or calls exec. */
	r = watch_lives(backend, ATTACH_LIFE_EXIT);
	if (r == 0)
		r = watch_lives(backend, ATTACH_LIFE_EXEC);
	if (r < 0)
		attach_error_set(
			ret_error,
			"exits of processes cannot be traced (tracepoints sched_process_exit, _exec): %s",
			strerror(-r));
	return r;
}

int attach_watch_switches(struct attach_backend *backend, bool watch)
{
	struct bpf_link **link = &backend->lives[ATTACH_LIFE_SWITCH];

	if (watch)
		return *link ? 0 : watch_lives(backend, ATTACH_LIFE_SWITCH);
	bpf_link__destroy(*link);
	*link = NULL;
	return 0;
}

/* Once, to see that it can be; from then on while there is a Python. */
static int start_python(struct attach_backend *backend, struct attach_error *ret_error)
{
	int r = watch_lives(backend, ATTACH_LIFE_SWITCH);

	if (r < 0)
		attach_error_set(ret_error,
				 "waits for Python's lock cannot be traced (tracepoint sched_switch): %s",
				 strerror(-r));
	return r;
}

static int backend_try(const struct attach_way *way, const struct attach_config *config,
		       struct attach_backend **ret_backend, struct attach_error *ret_error)
{
	_cleanup_(attach_backend_freep) struct attach_backend *backend = calloc(1, sizeof(*backend));
	int r;

	if (!backend) {
		attach_error_set(ret_error, "out of memory");
		return -ENOMEM;
	}
	backend->way = way;
	backend->tracefs = -1;
	r = attach_load(backend, config, ret_error);
	if (r == 0)
		r = way->try(backend, ret_error);
	if (r == 0)
		r = start(backend, ret_error);
	if (r == 0 && config->python)
		r = start_python(backend, ret_error);
	if (r < 0)
		return r;
	*ret_backend = TAKE_PTR(backend);
	return 0;
}

int attach_backend_new(const struct attach_config *config, struct attach_backend **ret_backend,
		       struct attach_error *ret_error)
{
	int r = attach_may(config, ret_error);

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(ways); i++) {
		/* A kernel without these links loads their programs all the same. */
		if (ways[i]->multi && (config->no_multi || !attach_kernel_has_multi()))
			continue;
		r = backend_try(ways[i], config, ret_backend, ret_error);
		if (r == 0)
			return 0;
		/* A process that may not load this one may not load the others. */
		if (r == -ENOMEM || r == -EPERM)
			return r;
		if (i + 1 < ARRAY_SIZE(ways))
			r = 0;
	}
	return r;
}

void attach_backend_end(struct attach_backend *backend)
{
	backend->ending = true;
}

void attach_backend_free(struct attach_backend *backend)
{
	if (!backend)
		return;
	attach_links_end(backend);
	for (size_t i = 0; i < ARRAY_SIZE(backend->lives); i++)
		bpf_link__destroy(backend->lives[i]);
	if (backend->control)
		munmap(backend->control, control_size());
	for (size_t i = 0; i < ARRAY_SIZE(backend->programs); i++)
		bpf_object__close(backend->programs[i]);
	if (backend->tracefs >= 0)
		close(backend->tracefs);
	free(backend->signatures);
	free(backend);
}

int attach_follow(struct attach_backend *backend, pid_t pid, uint64_t start_boot_ns)
{
	struct trace_proc proc = {
		.incarnation = (uint64_t)clock_mono_ns(),
		.start_boot_ns = start_boot_ns,
		.flags = TRACE_PROC_FOLLOW | TRACE_PROC_UNSEEN,
	};
	uint32_t tgid = (uint32_t)pid;

	if (backend->control->own_tgid != (uint32_t)getpid())
		return -ENOTSUP;
	backend->control->default_flags = TRACE_PROC_IGNORE;
	if (bpf_map_update_elem(attach_map_fd(backend, "procs"), &tgid, &proc, BPF_ANY) < 0)
		return -errno;
	return watch_lives(backend, ATTACH_LIFE_FORK);
}

const char *attach_backend_name(const struct attach_backend *backend)
{
	return backend->way->name;
}

void attach_entry_free(const struct attach_backend *backend, const uint64_t args[TRACE_FREE_ARGS])
{
	const struct bpf_program *program =
		bpf_object__find_program_by_name(backend->programs[0], "entry_free");
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = TRACE_FREE_ARGS * sizeof(*args));

	bpf_prog_test_run_opts(bpf_program__fd(program), &opts);
}

uint64_t attach_site_value(const struct attach_site *site)
{
	return site->call | (site->no_return ? (uint64_t)TRACE_SITE_NO_RETURN : 0) |
	       (uint64_t)site->stack << TRACE_SITE_STACK_SHIFT;
}

static int make(struct attach_backend *backend, const struct attachment *wanted,
		const struct attach_site *sites, size_t n, struct attachment **ret_attachment)
{
	_cleanup_(attachment_freep) struct attachment *attachment = NULL;
	int r;

	if (n == 0)
		return -EINVAL;
	attachment = malloc(sizeof(*attachment));
	if (!attachment)
		return -ENOMEM;
	*attachment = *wanted;
	r = backend->way->make(attachment, sites, n);
	if (r < 0)
		return r;
	*ret_attachment = TAKE_PTR(attachment);
	return 0;
}

int attach(struct attach_backend *backend, int fd, pid_t pid, bool returns, const struct attach_site *sites,
	   size_t n, struct attachment **ret_attachment)
{
	struct attachment wanted = { .backend = backend, .file = fd, .pid = pid, .returns = returns };

	return make(backend, &wanted, sites, n, ret_attachment);
}

int attach_empty(struct attach_backend *backend, int fd, pid_t pid, bool returns,
		 const struct attach_site *sites, size_t n, struct attachment **ret_attachment)
{
	struct attachment wanted = {
		.backend = backend, .file = fd, .pid = pid, .returns = returns, .empty = true
	};

	return make(backend, &wanted, sites, n, ret_attachment);
}

static void attachment_close(struct attachment *attachment)
{
	if (!attachment)
		return;
	for (size_t i = 0; i < attachment->parts_n; i++) {
		struct attach_part *part = &attachment->parts[i];
		char text[ATTACH_NAME_MAX + 32];

		if (part->fd >= 0)
			close(part->fd);
		if (part->name[0]) {
			int n = snprintf(text, sizeof(text), "-:%s\n", part->name);

			attach_tracefs_write(attachment->backend, text, (size_t)n);
		}
	}
	attach_signatures_remove(attachment);
	free(attachment);
}

void attachment_free_later(struct attachment *attachment)
{
	if (!attachment)
		return;
	for (size_t i = 0; i < attachment->parts_n; i++) {
		struct attach_part *part = &attachment->parts[i];

		if (part->fd >= 0 && !part->name[0] &&
		    attach_links_leave(attachment->backend, part->fd, attachment->file))
			part->fd = -1;
	}
	attachment_close(attachment);
}

void attachment_free(struct attachment *attachment)
{
	if (attachment && attachment->backend->ending)
		attachment_free_later(attachment);
	else
		attachment_close(attachment);
}

int attach_set_spec(struct attach_backend *backend, uint16_t call, const struct trace_spec *spec)
{
	struct trace_spec known = *spec;
	uint32_t key = call;

	if (call >= TRACE_CALLS_MAX)
		return -EINVAL;
	known.flags &= (uint8_t) ~(TRACE_SPEC_INPUTS | TRACE_SPEC_OUTPUTS);
	for (size_t i = 0; i < TRACE_OPERANDS; i++) {
		if (spec->operands[i].from != TRACE_FROM_NONE)
			known.flags |= TRACE_SPEC_INPUTS;
		if (TRACE_FROM_IS_OUTPUT(spec->operands[i].from))
			known.flags |= TRACE_SPEC_OUTPUTS;
	}
	return bpf_map_update_elem(attach_map_fd(backend, "specs"), &key, &known, BPF_ANY) < 0 ? -errno : 0;
}

int attach_call_gone(struct attach_backend *backend, uint16_t call)
{
	int map = attach_map_fd(backend, "specs");
	struct trace_spec spec;
	uint32_t key = call;

	if (bpf_map_lookup_elem(map, &key, &spec) < 0)
		return -errno;
	spec.gone_ns = (uint64_t)clock_mono_ns();
	if (bpf_map_update_elem(map, &key, &spec, BPF_EXIST) < 0)
		return -errno;
	__atomic_store_n(&backend->control->gone_ns, spec.gone_ns, __ATOMIC_RELEASE);
	return 0;
}

struct trace_control *attach_control(struct attach_backend *backend)
{
	return backend->control;
}

int attach_map_fd(const struct attach_backend *backend, const char *name)
{
	return bpf_object__find_map_fd_by_name(backend->programs[0], name);
}

static void counters_add(struct trace_counters *sum, const struct trace_counters *c)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)c;

	_Static_assert(sizeof(*c) % sizeof(*from) == 0, "only numbers");
	for (size_t i = 0; i < sizeof(*c) / sizeof(*from); i++)
		to[i] += from[i];
}

int attach_counters(struct attach_backend *backend, struct trace_counters *ret_sum,
		    struct trace_counters *per_cpu, size_t cpus_n)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ struct trace_counters *all = NULL;
	struct trace_counters sum = { 0 };
	uint32_t key = 0;

	if (cpus < 0)
		return cpus;
	all = calloc((size_t)cpus, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (bpf_map_lookup_elem(attach_map_fd(backend, "counters"), &key, all) < 0)
		return -errno;
	for (size_t i = 0; i < (size_t)cpus; i++) {
		counters_add(&sum, &all[i]);
		if (per_cpu && i < cpus_n)
			per_cpu[i] = all[i];
	}
	*ret_sum = sum;
	return 0;
}
