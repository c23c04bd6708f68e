// SPDX-License-Identifier: Apache-2.0
#include "trace/sums_maps.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

enum { BATCH = 256 };

static int map_of(struct attach_backend *backend, const char *name, struct sums_map *ret_map)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = attach_map_fd(backend, name);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	*ret_map = (struct sums_map){ .fd = fd, .entries = info.max_entries };
	return 0;
}

int sums_maps_init(struct sums_maps_of *of, struct attach_backend *backend)
{
	int r;

	*of = (struct sums_maps_of){ .control = attach_control(backend), .backend = backend };
	r = map_of(backend, "stats", &of->stats);
	if (r == 0)
		r = map_of(backend, "errors", &of->errors);
	if (r == 0)
		r = map_of(backend, "procs", &of->procs);
	return r;
}

static int read_stat(void *maps, const struct trace_stat_key *key, struct trace_stat *ret_stat)
{
	struct sums_maps_of *of = maps;

	return bpf_map_lookup_elem(of->stats.fd, key, ret_stat) < 0 ? -errno : 0;
}

static int read_proc(void *maps, uint32_t tgid, struct trace_proc *ret_proc)
{
	struct sums_maps_of *of = maps;

	return bpf_map_lookup_elem(of->procs.fd, &tgid, ret_proc) < 0 ? -errno : 0;
}

static int set_flags(void *maps, uint32_t tgid, uint64_t incarnation, uint32_t flags)
{
	struct sums_maps_of *of = maps;
	struct trace_proc proc;
	int r = read_proc(of, tgid, &proc);

	if (r == 0 && proc.incarnation != incarnation)
		r = -ENOENT;
	if (r < 0)
		return r;
	proc.flags = flags | (proc.flags & (TRACE_PROC_FOLLOW | TRACE_PROC_UNSEEN));
	if (bpf_map_update_elem(of->procs.fd, &tgid, &proc, BPF_EXIST) < 0)
		return -errno;
	__atomic_fetch_add(&of->control->epoch, 1, __ATOMIC_RELEASE);
	return 0;
}

static int each_stat(void *maps, void (*fn)(const struct trace_stat_key *key, void *userdata), void *userdata)
{
	struct sums_maps_of *of = maps;
	struct trace_stat_key key, next;
	int r = bpf_map_get_next_key(of->stats.fd, NULL, &next);

	/* If the current key is deleted meanwhile, the walk starts again; the bound on n ends it. */
	for (uint32_t n = 0; r == 0 && n < 2 * of->stats.entries; n++) {
		fn(&next, userdata);
		key = next;
		r = bpf_map_get_next_key(of->stats.fd, &key, &next);
	}
	return 0;
}

/* Copies the keys first, since @fn may delete entries. */
static int each_error(void *maps,
		      void (*fn)(const struct trace_error_key *key, uint64_t count, void *userdata),
		      void *userdata)
{
	struct sums_maps_of *of = maps;
	_cleanup_free_ struct trace_error_key *keys = NULL;
	struct trace_error_key key;
	size_t n = 0, cap = 0;
	int r = bpf_map_get_next_key(of->errors.fd, NULL, &key);

	for (; r == 0 && n < of->errors.entries; n++) {
		if (n == cap) {
			size_t grown = cap ? 2 * cap : BATCH;
			void *larger = realloc(keys, grown * sizeof(*keys));

			if (!larger)
				return -ENOMEM;
			keys = larger;
			cap = grown;
		}
		keys[n] = key;
		r = bpf_map_get_next_key(of->errors.fd, &keys[n], &key);
	}
	for (size_t i = 0; i < n; i++) {
		struct trace_error error;

		if (bpf_map_lookup_elem(of->errors.fd, &keys[i], &error) == 0)
			fn(&keys[i], error.count, userdata);
	}
	return 0;
}

static void delete_stat(void *maps, const struct trace_stat_key *key)
{
	const struct sums_maps_of *of = maps;
	const uint64_t args[TRACE_FREE_ARGS] = {
		[TRACE_FREE_TABLE] = TRACE_TABLE_STATS,
		[TRACE_FREE_CALL] = (uint64_t)key->tgid << 32 | key->call,
		[TRACE_FREE_INCARNATION] = key->incarnation,
	};

	attach_entry_free(of->backend, args);
}

static void delete_error(void *maps, const struct trace_error_key *key)
{
	const struct sums_maps_of *of = maps;
	const uint64_t args[TRACE_FREE_ARGS] = {
		[TRACE_FREE_TABLE] = TRACE_TABLE_ERRORS,
		[TRACE_FREE_CALL] = (uint64_t)key->tgid << 32 | key->call,
		[TRACE_FREE_INCARNATION] = key->incarnation,
		[TRACE_FREE_RESULT] = (uint32_t)key->result,
	};

	attach_entry_free(of->backend, args);
}

const struct sums_maps sums_kernel_maps = {
	.stat = read_stat,
	.proc = read_proc,
	.set_flags = set_flags,
	.each_stat = each_stat,
	.each_error = each_error,
	.delete_stat = delete_stat,
	.delete_error = delete_error,
};
