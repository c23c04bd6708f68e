// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of sites and what of them a kernel takes; the kernel is played by a list of offsets that it refuses.
 */
#include "test.h"

#include <errno.h>

#include "trace/attach.h"

struct attachment {
	size_t n;
	bool returns;
};

static struct {
	uint64_t refuses[8]; /* offsets; 0 ends them */
	bool refuses_returns;
	unsigned gone;
	int error; /* of every attachment */
	unsigned live, entries, returns, made;
} kernel;

static int fake_attach(_unused_ struct attach_backend *backend, _unused_ int fd, _unused_ pid_t pid,
		       bool returns, const struct attach_site *sites, size_t n,
		       struct attachment **ret_attachment)
{
	assert_true(n > 0);
	if (kernel.error)
		return kernel.error;
	if (returns && kernel.refuses_returns)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; kernel.refuses[k]; k++)
			if (sites[i].offset == kernel.refuses[k])
				return -EOPNOTSUPP;
	/* Returns come first, entries last. */
	assert_true(returns || kernel.entries == 0);
	*ret_attachment = malloc(sizeof(struct attachment));
	assert_non_null(*ret_attachment);
	**ret_attachment = (struct attachment){ n, returns };
	kernel.live += (unsigned)n;
	kernel.made++;
	return 0;
}

static void fake_free(struct attachment *attachment)
{
	if (attachment)
		kernel.live -= (unsigned)attachment->n;
	free(attachment);
}

static uint32_t listed; /* functions of the file */

static int fake_call_gone(_unused_ struct attach_backend *backend, _unused_ uint16_t call)
{
	kernel.gone++;
	return 0;
}

#define attach fake_attach
#define attach_call_gone fake_call_gone
#define attachment_free fake_free
#include "trace/files.c"

static const struct site_list *listing(void)
{
	static union {
		struct site_list list;
		char space[sizeof(struct site_list) + 64 * sizeof(struct site_entry)];
	} made;

	made.list.n = listed;
	for (uint32_t i = 0; i < listed; i++)
		made.list.at[i] = (struct site_entry){
			.call = probe_call(
				probe_find(PROBE_CUDA, i % 2 ? "cuLaunchKernel" : "cuMemAlloc_v2")),
			.class = SITE_EMULATED,
			.flags = (uint8_t)((i != 5 ? SITE_ENTRY_CHOSEN : 0) |
					   (i != 6 ? SITE_ENTRY_MAY_RETURN : 0)),
			.offset = 0x1000 + 16 * (i == 7 ? 3 : i), /* 7 is another name of 3 */
		};
	return &made.list;
}

static uint32_t hit_ns[TRACE_CALLS_MAX], entry_ns[TRACE_CALLS_MAX];
static const struct site_query query = { .rules = { .entry_ns = { 100 }, .return_ns = { 250 } } };
static const struct files_config config = {
	.query = &query, .returns = true, .hit_ns = hit_ns, .entry_ns = entry_ns
};

static int set_up(_unused_ void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	listed = 20;
	return 0;
}

static void all_taken(_unused_ void **state)
{
	struct file_probes *file;

	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), 0);
	assert_int_equal(files_attached(file), 18);
	assert_int_equal(file->refused, 1);
	assert_int_equal(file->no_returns, 1);
	assert_int_equal(kernel.live, 18 + 17);
	assert_int_equal(kernel.made, 4); /* two groups, each returns and entries */
	assert_int_equal(hit_ns[probe_call(probe_find(PROBE_CUDA, "cuLaunchKernel"))], 250);
	files_give_up(&config, file, PROBE_GROUP_LAUNCH, 1);
	assert_int_equal(kernel.gone, files_given_up(file));
	assert_int_equal(files_attached(file) + files_given_up(file), 18);
	assert_int_equal(files_groups_given_up(file), 1U << PROBE_GROUP_LAUNCH);
	assert_int_equal(files_take_back(&config, file, -1, PROBE_GROUP_LAUNCH, 2), 0);
	assert_int_equal(files_attached(file), 18);
	assert_int_equal(files_given_up(file), 0);
	files_free(file);
	assert_int_equal(kernel.live, 0);
}

/* Launches lose their return probes and get them again, whatever happens to them meanwhile. */
static void returns_taken_away(_unused_ void **state)
{
	const uint16_t launch = probe_call(probe_find(PROBE_CUDA, "cuLaunchKernel"));
	struct file_group *group;
	struct file_probes *file;

	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), 0);
	group = &file->groups[PROBE_GROUP_LAUNCH];
	assert_int_equal(entry_ns[launch], 100);
	assert_int_equal(files_reduce(&config, file, -1, PROBE_GROUP_LAUNCH, 1), 0);
	assert_int_equal(kernel.gone, group->sites_n);
	assert_int_equal(kernel.live, 18 + 17 - group->sites_n); /* all of these had one */
	assert_null(group->returns);
	assert_true(group->reduced.taken);
	assert_int_equal(files_groups_given_up(file), 0);
	assert_int_equal(files_restore(&config, file, -1, PROBE_GROUP_LAUNCH, 2), 0);
	assert_int_equal(kernel.live, 18 + 17);
	/* Given up while they lack them. */
	assert_int_equal(files_reduce(&config, file, -1, PROBE_GROUP_LAUNCH, 3), 0);
	files_give_up(&config, file, PROBE_GROUP_LAUNCH, 4);
	assert_int_equal(files_restore(&config, file, -1, PROBE_GROUP_LAUNCH, 5), 0);
	assert_null(group->entries);
	assert_int_equal(files_take_back(&config, file, -1, PROBE_GROUP_LAUNCH, 6), 0);
	assert_int_equal(kernel.live, 18 + 17);
	files_free(file);
	assert_int_equal(kernel.live, 0);
}

static void launches_without_returns(_unused_ void **state)
{
	struct files_config without = config;
	struct file_probes *file;

	without.no_launch_returns = true;
	assert_int_equal(files_attach(&without, -1, listing(), &(struct files_wanted){ 0 }, &file), 0);
	assert_null(file->groups[PROBE_GROUP_LAUNCH].returns);
	assert_int_equal(file->no_returns, 1); /* that of another call */
	files_free(file);
}

static void some_refused(_unused_ void **state)
{
	struct file_probes *file;

	kernel.refuses[0] = 0x1000 + 16 * 2;
	kernel.refuses[1] = 0x1000 + 16 * 12;
	kernel.refuses[2] = 0x1000 + 16 * 19;
	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), 0);
	assert_int_equal(files_attached(file), 15);
	assert_int_equal(file->refused, 4);
	for (int g = 0; g < PROBE_GROUPS; g++)
		for (uint32_t i = 0; i < file->groups[g].sites_n; i++)
			for (size_t k = 0; kernel.refuses[k]; k++)
				assert_int_not_equal(file->groups[g].sites[i].offset, kernel.refuses[k]);
	assert_int_equal(kernel.live, 15 + 14);
	files_free(file);
	assert_int_equal(kernel.live, 0);
}

static void no_returns(_unused_ void **state)
{
	struct file_probes *file;

	kernel.refuses_returns = true;
	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), 0);
	assert_int_equal(files_attached(file), 18);
	assert_int_equal(file->no_returns, 18);
	assert_int_equal(kernel.live, 18);
	files_free(file);
}

static void nothing_taken(_unused_ void **state)
{
	struct file_probes *file;

	kernel.error = -EPERM;
	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), -EPERM);
	assert_int_equal(kernel.live, 0);
	listed = 0;
	assert_int_equal(files_attach(&config, -1, listing(), &(struct files_wanted){ 0 }, &file), -ENOENT);
}

static int added_row(unsigned user, _unused_ uint8_t pattern, const char *symbol, bool of_users,
		     uint16_t *ret_call, void *userdata)
{
	(void)userdata;
	return probe_of_user(user - 1, symbol, of_users, ret_call);
}

/* Names come from a helper that may have been taken over: only what a pattern matches is taken. */
static void functions_that_the_user_names(_unused_ void **state)
{
	static const char names[] = "foo_a\0other\0foo_b\0foo\nc";
	static union {
		struct site_list list;
		char space[sizeof(struct site_list) + 4 * sizeof(struct site_entry) + sizeof(names)];
	} made;
	const struct site_entry user = {
		.class = SITE_EMULATED, .flags = SITE_ENTRY_USER | SITE_ENTRY_CHOSEN | SITE_ENTRY_MAY_RETURN
	};
	const struct files_config with_user = { .query = &query,
						.returns = true,
						.hit_ns = hit_ns,
						.entry_ns = entry_ns,
						.added_row = added_row };
	const struct files_wanted all = { .users = LIBRARY_USER_BIT(0) | LIBRARY_USER_BIT(1) };
	struct file_probes *file;

	library_set_user_text("libfoo.so:foo* returns; libfoo.so:foo_b");
	made.list.n = 4;
	made.list.names_n = sizeof(names);
	for (uint32_t i = 0; i < 4; i++) {
		made.list.at[i] = user;
		made.list.at[i].offset = 0x1000 + 16 * i;
	}
	made.list.at[2].call = 1; /* the first probe matches it, too */
	memcpy(&made.list.at[4], names, sizeof(names));
	assert_int_equal(files_attach(&with_user, -1, &made.list, &all, &file), 0);
	assert_int_equal(file->groups[PROBE_GROUP_USER].sites_n, 1);
	assert_string_equal(probe_at(file->groups[PROBE_GROUP_USER].sites[0].call)->symbol, "foo_a");
	assert_true(file->apart);
	assert_int_equal(file->user.matched, 2);
	assert_int_equal(file->user.refused, 1); /* not printable */
	assert_int_equal(file->user.more, 2);
	assert_int_equal(file->refused, 0);
	files_free(file);
	/* None of the user's probes applies to the file. */
	assert_int_equal(files_attach(&with_user, -1, &made.list, &(struct files_wanted){ 0 }, &file), 0);
	assert_int_equal(files_attached(file), 0);
	files_free(file);
	library_set_user_text(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_taken, set_up),
		cmocka_unit_test_setup(returns_taken_away, set_up),
		cmocka_unit_test_setup(launches_without_returns, set_up),
		cmocka_unit_test_setup(some_refused, set_up),
		cmocka_unit_test_setup(no_returns, set_up),
		cmocka_unit_test_setup(nothing_taken, set_up),
		cmocka_unit_test_setup(functions_that_the_user_names, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
