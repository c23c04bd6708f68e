// SPDX-License-Identifier: Apache-2.0
#include "trace/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SITES_PER_PROBE = 4, /* sites of a file for each row: a name may have several functions */
	TRIES_MAX = 64, /* attachments made to find what the kernel refuses in one group */
};

struct gathering {
	const struct files_config *config;
	struct file_probes *file;
	int fd;
	uint32_t sites_n;
};

/* Used where it could not be measured. From a machine of 2026, in the middle of published measurements. */
static const uint32_t hit_ns_usual[SITE_CLASSES] = {
	[SITE_EMULATED] = 600,
	[SITE_OPTIMISED] = 300,
	[SITE_SINGLE_STEP] = 10000,
};

static bool has_offset(const struct file_probes *file, uint64_t offset)
{
	for (int g = 0; g < PROBE_GROUPS; g++)
		for (uint32_t i = 0; i < file->groups[g].sites_n; i++)
			if (file->groups[g].sites[i].offset == offset)
				return true;
	return false;
}

static int append(struct file_group *group, const struct attach_site *site)
{
	uint32_t n = group->sites_n;

	if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) { /* a power of two is full */
		void *grown = realloc(group->sites, MAX(8u, 2 * n) * sizeof(*site));

		if (!grown)
			return -ENOMEM;
		group->sites = grown;
	}
	group->sites[group->sites_n++] = *site;
	return 0;
}

static int gather(struct gathering *g, const struct site_entry *entry)
{
	const struct files_config *config = g->config;
	const struct probe *probe = &probes[entry->call];
	struct attach_site wanted = {
		.offset = entry->offset,
		.call = entry->call,
		.stack = entry->stack > 0 ? (uint32_t)entry->stack : 0,
	};
	uint32_t cost;
	ssize_t n;

	g->file->only_companions &= probe_libraries[probe->library].companion;
	if (entry->flags & SITE_ENTRY_LEFT_TO_DRIVER) {
		g->file->left_to_driver = true;
		return 0;
	}
	if (!(entry->flags & SITE_ENTRY_CHOSEN) || g->sites_n >= SITES_PER_PROBE * (uint32_t)probes_n) {
		g->file->refused++;
		return 0;
	}
	/* Two names of one function share the probe of the first name. */
	if (has_offset(g->file, wanted.offset))
		return 0;
	wanted.no_return = !(config->returns && probe->may_return && (entry->flags & SITE_ENTRY_MAY_RETURN));
	n = pread(g->fd, wanted.code, sizeof(wanted.code), (off_t)wanted.offset);
	wanted.code_n = n > 0 ? (uint8_t)n : 0;
	cost = wanted.no_return ? config->query->rules.entry_ns[entry->class] :
				  config->query->rules.return_ns[entry->class];
	if (cost == 0)
		cost = hit_ns_usual[entry->class];
	config->hit_ns[entry->call] = MAX(config->hit_ns[entry->call], cost);
	g->sites_n++;
	return append(&g->file->groups[probe->group], &wanted);
}

/* ---- attaching ---- */

struct file_trial {
	const struct files_config *config;
	int fd;
	bool returns;
	unsigned tries;
};

/*
 * Finds the sites that the kernel accepts, by trying halves down to single sites, and moves the refused ones
 * after them. *ret_n: number of accepted sites. Leaves nothing attached.
 */
static int part(struct file_trial *t, struct attach_site *sites, size_t n, size_t *ret_n)
{
	struct attachment *attachment;
	size_t low, high, half = n / 2;
	int r;

	if (n == 0) {
		*ret_n = 0;
		return 0;
	}
	if (t->tries++ >= TRIES_MAX)
		return -E2BIG;
	r = attach(t->config->backend, t->fd, t->config->pid, t->returns, sites, n, &attachment);
	if (r == 0) {
		attachment_free(attachment);
		*ret_n = n;
		return 0;
	}
	if (n == 1) {
		*ret_n = 0;
		return 0;
	}
	r = part(t, sites, half, &low);
	if (r == 0)
		r = part(t, sites + half, n - half, &high);
	if (r < 0)
		return r;
	/* Swaps refused sites of the first half with accepted ones of the second. */
	for (size_t i = 0; i < MIN(half - low, high); i++) {
		size_t from = half + high - 1 - i;
		struct attach_site refused = sites[low + i];

		sites[low + i] = sites[from];
		sites[from] = refused;
	}
	*ret_n = low + high;
	return 0;
}

/* Attaches the accepted ones of the first @n sites. On an error, none is attached. */
static int attach_part(const struct files_config *config, int fd, bool returns, struct attach_site *sites,
		       size_t n, size_t *ret_n, struct attachment **ret_attachment)
{
	struct file_trial trial = { .config = config, .fd = fd, .returns = returns };
	int r = n == 0 ? 0 : attach(config->backend, fd, config->pid, returns, sites, n, ret_attachment);

	if (r == 0) {
		*ret_n = n;
		return 0;
	}
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EPERM)
		return r; /* not caused by a site */
	r = part(&trial, sites, n, ret_n);
	if (r == 0 && *ret_n > 0)
		r = attach(config->backend, fd, config->pid, returns, sites, *ret_n, ret_attachment);
	return r;
}

/* Moves sites with a return probe before those without. Returns their number. */
static size_t returns_first(struct attach_site *sites, size_t n)
{
	size_t first = 0;

	for (size_t i = 0; i < n; i++)
		if (!sites[i].no_return) {
			struct attach_site site = sites[i];

			sites[i] = sites[first];
			sites[first++] = site;
		}
	return first;
}

static int attach_group(const struct files_config *config, int fd, struct file_group *group)
{
	size_t with = returns_first(group->sites, group->sites_n), got = 0;
	int r = attach_part(config, fd, true, group->sites, with, &got, &group->returns);

	for (size_t i = r < 0 ? 0 : got; i < with; i++)
		group->sites[i].no_return = true;
	r = attach_part(config, fd, false, group->sites, group->sites_n, &got, &group->entries);
	if (r < 0) {
		attachment_free(TAKE_PTR(group->returns));
		return r;
	}
	group->sites_n = (uint32_t)got;
	return 0;
}

static bool probe_may_return(uint16_t call)
{
	return probes[call].may_return;
}

static uint32_t count_no_returns(const struct file_probes *file)
{
	uint32_t n = 0;

	for (int g = 0; g < PROBE_GROUPS; g++)
		for (uint32_t i = 0; i < file->groups[g].sites_n; i++)
			n += file->groups[g].sites[i].no_return &&
			     probe_may_return(file->groups[g].sites[i].call);
	return n;
}

int files_attach(const struct files_config *config, int fd, const struct site_list *sites,
		 struct file_probes **ret_probes)
{
	_cleanup_(files_freep) struct file_probes *file = calloc(1, sizeof(*file));
	struct gathering gathering = { .config = config, .file = file, .fd = fd };
	int r, error = 0;

	if (!file)
		return -ENOMEM;
	file->only_companions = true;
	for (uint32_t i = 0; i < sites->n; i++) {
		r = gather(&gathering, &sites->at[i]);
		if (r < 0)
			return r;
	}
	if (gathering.sites_n == 0 && file->refused == 0 && !file->left_to_driver)
		return -ENOENT;
	for (int g = 0; g < PROBE_GROUPS; g++) {
		struct file_group *group = &file->groups[g];
		uint32_t wanted = group->sites_n;

		r = attach_group(config, fd, group);
		if (r < 0) {
			group->sites_n = 0;
			error = r;
		}
		file->refused += wanted - group->sites_n;
	}
	if (error < 0 && files_attached(file) == 0)
		return error;
	file->no_returns = count_no_returns(file);
	*ret_probes = TAKE_PTR(file);
	return 0;
}

static void detach(struct file_group *group)
{
	attachment_free(TAKE_PTR(group->entries));
	attachment_free(TAKE_PTR(group->returns));
}

void files_free_later(struct file_probes *file)
{
	if (!file)
		return;
	for (int g = 0; g < PROBE_GROUPS; g++) {
		attachment_free_later(TAKE_PTR(file->groups[g].entries));
		attachment_free_later(TAKE_PTR(file->groups[g].returns));
	}
	files_free(file);
}

void files_free(struct file_probes *file)
{
	if (!file)
		return;
	for (int g = 0; g < PROBE_GROUPS; g++) {
		detach(&file->groups[g]);
		free(file->groups[g].sites);
	}
	free(file);
}

void files_give_up(const struct files_config *config, struct file_probes *file, enum probe_group group,
		   int64_t now_ns)
{
	detach(&file->groups[group]);
	for (uint32_t i = 0; i < file->groups[group].sites_n; i++)
		attach_call_gone(config->backend, file->groups[group].sites[i].call);
	budget_take(&file->groups[group].budget, now_ns);
}

int files_take_back(const struct files_config *config, struct file_probes *file, int fd,
		    enum probe_group group, int64_t now_ns)
{
	int r = attach_group(config, fd, &file->groups[group]);

	if (r == 0)
		budget_give_back(&file->groups[group].budget, now_ns);
	return r;
}

uint32_t files_attached(const struct file_probes *file)
{
	uint32_t n = 0;

	for (int g = 0; g < PROBE_GROUPS; g++)
		n += file->groups[g].entries ? file->groups[g].sites_n : 0;
	return n;
}

uint32_t files_given_up(const struct file_probes *file)
{
	uint32_t n = 0;

	for (int g = 0; g < PROBE_GROUPS; g++)
		n += file->groups[g].budget.taken ? file->groups[g].sites_n : 0;
	return n;
}

unsigned files_groups_given_up(const struct file_probes *file)
{
	unsigned groups = 0;

	for (int g = 0; g < PROBE_GROUPS; g++)
		groups |= (unsigned)file->groups[g].budget.taken << g;
	return groups;
}
