// SPDX-License-Identifier: Apache-2.0
#include "trace/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "trace/pattern.h"

enum {
	SITES_PER_PROBE = 4, /* sites of a file for each row: a name may have several functions */
	TRIES_MAX = 64, /* attachments made to find what the kernel refuses in one group */
};

struct gathering {
	const struct files_config *config;
	struct file_probes *file;
	int fd;
	const struct files_wanted *wanted;
	const char *name; /* of the next entry that has one */
	uint32_t sites_n; /* of the table's functions */
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

static int add_site(struct gathering *g, const struct site_entry *entry, uint16_t call)
{
	const struct files_config *config = g->config;
	const struct probe *probe = probe_at(call);
	struct attach_site wanted = {
		.offset = entry->offset,
		.call = call,
		.stack = entry->stack > 0 ? (uint32_t)entry->stack : 0,
	};
	bool launch = probe->group == PROBE_GROUP_LAUNCH;
	uint32_t cost, entry_cost;
	ssize_t n;

	/* Two names of one function share the probe of the first name. */
	if (has_offset(g->file, wanted.offset))
		return 0;
	wanted.no_return =
		!(config->returns && probe->may_return && (entry->flags & SITE_ENTRY_MAY_RETURN)) ||
		(launch && config->no_launch_returns);
	n = pread(g->fd, wanted.code, sizeof(wanted.code), (off_t)wanted.offset);
	wanted.code_n = n > 0 ? (uint8_t)n : 0;
	entry_cost = config->query->rules.entry_ns[entry->class];
	cost = wanted.no_return ? entry_cost : config->query->rules.return_ns[entry->class];
	if (cost == 0)
		cost = hit_ns_usual[entry->class];
	if (entry_cost == 0)
		entry_cost = hit_ns_usual[entry->class];
	config->hit_ns[call] = MAX(config->hit_ns[call], cost);
	config->entry_ns[call] = MAX(config->entry_ns[call], entry_cost);
	return append(&g->file->groups[probe->group], &wanted);
}

static const char *next_name(struct gathering *g)
{
	const char *name = g->name;

	g->name += strlen(name) + 1;
	return name;
}

/* One of a function that a pattern matches. What a helper says is checked: the pattern may be another one. */
static int gather_pattern(struct gathering *g, const struct site_entry *entry)
{
	const char *name = next_name(g);
	uint8_t pattern = (uint8_t)(entry->call + 1);
	uint16_t call;
	int r;

	if (!g->wanted->patterns)
		return 0;
	g->file->patterns.matched++;
	if (!(entry->flags & SITE_ENTRY_CHOSEN) || !text_is_printable(name)) {
		g->file->patterns.refused++;
		return 0;
	}
	r = pattern_of(g->config->query->libraries, name) == pattern ?
		    g->config->added_row(0, pattern, name, g->wanted->of_users, &call, g->config->userdata) :
		    -ENOSPC;
	if (r == -ENOSPC) {
		g->file->patterns.matched--;
		g->file->patterns.more++;
		return 0;
	}
	return r < 0 ? r : add_site(g, entry, call);
}

/* One of a function that one of the user's probes matches. */
static int gather_user(struct gathering *g, const struct site_entry *entry)
{
	const char *name = next_name(g);
	uint16_t call;
	int r;

	g->file->user.matched++;
	if (!(entry->flags & SITE_ENTRY_CHOSEN) || !text_is_printable(name)) {
		g->file->user.refused++;
		return 0;
	}
	/* What a helper says of the name is checked: it may be another one's. */
	r = library_user_of(g->wanted->users, name) == entry->call + 1U ?
		    g->config->added_row(entry->call + 1U, 0, name, g->wanted->of_users, &call,
					 g->config->userdata) :
		    -ENOSPC;
	if (r == -ENOSPC) {
		g->file->user.matched--;
		g->file->user.more++;
		return 0;
	}
	return r < 0 ? r : add_site(g, entry, call);
}

static int gather(struct gathering *g, const struct site_entry *entry)
{
	if (entry->flags & SITE_ENTRY_USER)
		return gather_user(g, entry);
	if (entry->flags & SITE_ENTRY_PATTERN)
		return gather_pattern(g, entry);
	if (entry->flags & SITE_ENTRY_LEFT_TO_DRIVER) {
		g->file->left_to_driver = true;
		return 0;
	}
	if (!(entry->flags & SITE_ENTRY_CHOSEN) || g->sites_n >= SITES_PER_PROBE * (uint32_t)probes_n) {
		g->file->refused++;
		return 0;
	}
	g->sites_n++;
	return add_site(g, entry, entry->call);
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

/* Without those that launches shall not have. */
static void count_no_returns(const struct files_config *config, struct file_probes *file)
{
	for (int g = 0; g < PROBE_GROUPS; g++) {
		if (g == PROBE_GROUP_LAUNCH && config->no_launch_returns)
			continue;
		for (uint32_t i = 0; i < file->groups[g].sites_n; i++) {
			const struct attach_site *site = &file->groups[g].sites[i];
			const struct probe *probe = probe_at(site->call);

			if (!site->no_return)
				continue;
			if (probe->user)
				file->user.no_returns += library_user()->at[probe->user - 1].returns;
			else
				file->no_returns += probe->may_return;
		}
	}
}

int files_attach(const struct files_config *config, int fd, const struct site_list *sites,
		 const struct files_wanted *wanted, struct file_probes **ret_probes)
{
	_cleanup_(files_freep) struct file_probes *file = calloc(1, sizeof(*file));
	struct gathering gathering = {
		.config = config, .file = file, .fd = fd, .wanted = wanted, .name = site_list_names(sites)
	};
	int r, error = 0;

	if (!file)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->n; i++) {
		r = gather(&gathering, &sites->at[i]);
		if (r < 0)
			return r;
	}
	file->user.more += sites->more.user;
	file->patterns.more += wanted->patterns ? sites->more.patterns : 0;
	file->apart = gathering.sites_n == 0 && file->refused == 0 && !file->left_to_driver;
	if (file->apart && file->user.matched + file->user.more == 0 &&
	    file->patterns.matched + file->patterns.more == 0)
		return -ENOENT;
	for (int g = 0; g < PROBE_GROUPS; g++) {
		struct file_group *group = &file->groups[g];
		uint32_t all = group->sites_n;

		r = attach_group(config, fd, group);
		if (r < 0) {
			group->sites_n = 0;
			error = r;
		}
		*(g == PROBE_GROUP_USER      ? &file->user.refused :
		  g == PROBE_GROUP_OPERATORS ? &file->patterns.refused :
					       &file->refused) += all - group->sites_n;
	}
	if (error < 0 && files_attached(file) == 0)
		return error;
	count_no_returns(config, file);
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

/* What is open in the kernel side when the probes change will never return. */
static void abandon(const struct files_config *config, const struct file_group *group)
{
	for (uint32_t i = 0; i < group->sites_n; i++)
		attach_call_gone(config->backend, group->sites[i].call);
}

void files_give_up(const struct files_config *config, struct file_probes *file, enum probe_group group,
		   int64_t now_ns)
{
	detach(&file->groups[group]);
	abandon(config, &file->groups[group]);
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

static void set_reduced(struct file_group *group, bool reduced)
{
	for (uint32_t i = 0; i < group->sites_n; i++) {
		struct attach_site *site = &group->sites[i];

		if (reduced ? site->no_return : !site->reduced)
			continue;
		site->reduced = site->no_return = reduced;
	}
}

int files_reduce(const struct files_config *config, struct file_probes *file, int fd, enum probe_group which,
		 int64_t now_ns)
{
	struct file_group *group = &file->groups[which];
	int r;

	detach(group);
	abandon(config, group);
	set_reduced(group, true);
	r = attach_group(config, fd, group);
	budget_take(&group->reduced, now_ns);
	if (r < 0)
		budget_take(&group->budget, now_ns);
	return r;
}

int files_restore(const struct files_config *config, struct file_probes *file, int fd, enum probe_group which,
		  int64_t now_ns)
{
	struct file_group *group = &file->groups[which];
	int r = 0;

	set_reduced(group, false);
	budget_give_back(&group->reduced, now_ns);
	if (group->budget.taken)
		return 0; /* with the probes themselves */
	detach(group);
	abandon(config, group);
	r = attach_group(config, fd, group);
	if (r < 0)
		budget_take(&group->budget, now_ns);
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
