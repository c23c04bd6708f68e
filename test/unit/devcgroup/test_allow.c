// SPDX-License-Identifier: Apache-2.0
/*
 * What is changed, and what is said of it, where the kernel answers as it rarely does. Programs are not the
 * kernel's but of this file; a cgroup of version 1 is a folder.
 */
#include "../needs.h"

#include <linux/capability.h>
#include <sys/stat.h>

#include "devcgroup/attached.h"

#define INSN(code_, imm_)                      \
	{                                      \
		.code = (code_), .imm = (imm_) \
	}

static const struct bpf_insn deny[] = {
	INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0),
	INSN(BPF_JMP | BPF_EXIT, 0),
};

/* The kernel's: what is attached, and what it answers. */
static struct {
	struct attached list[3];
	unsigned n;
	bool incomplete;
	int removing; /* the answer */
	unsigned replaced, removed, loaded;
	struct bpf_insn copy[PROGRAM_RULES_MAX + 2]; /* loaded last */
	unsigned copy_n;
} kernel;

static void set_program(struct attached *a, uint32_t id, const struct bpf_insn *insns, unsigned n)
{
	memset(a, 0, sizeof(*a));
	a->id = id;
	snprintf(a->name, sizeof(a->name), "%s", "owner");
	a->n = n;
	a->insns = malloc(n * sizeof(*insns));
	memcpy(a->insns, insns, n * sizeof(*insns));
	a->rules = program_ours(insns, n, &a->said);
}

int attached_read(_unused_ int cgroup, const char *path, struct attached_list *ret_list)
{
	ret_list->list = calloc(kernel.n + 1, sizeof(*ret_list->list));
	ret_list->n = kernel.n;
	ret_list->flags = BPF_F_ALLOW_MULTI;
	ret_list->incomplete = kernel.incomplete;
	for (unsigned i = 0; i < kernel.n; i++) {
		set_program(&ret_list->list[i], kernel.list[i].id, kernel.list[i].insns, kernel.list[i].n);
		snprintf(ret_list->list[i].cgroup, sizeof(ret_list->list[i].cgroup), "%s", path);
	}
	return 0;
}

void attached_done(struct attached_list *list)
{
	for (unsigned i = 0; list->list && i < list->n; i++)
		free(list->list[i].insns);
	free(list->list);
	*list = (struct attached_list){ 0 };
}

int attached_original(_unused_ const struct attached *ours, _unused_ int *ret_program)
{
	return -ENOENT;
}

int attached_load(const struct bpf_insn *first, unsigned first_n, const struct bpf_insn *then,
		  unsigned then_n, _unused_ const char *name, int *ret_program,
		  _unused_ struct devcgroup_why *why)
{
	kernel.loaded++;
	memcpy(kernel.copy, first, first_n * sizeof(*first));
	if (then_n > 0)
		memcpy(kernel.copy + first_n, then, then_n * sizeof(*then));
	kernel.copy_n = first_n + then_n;
	*ret_program = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

int attached_replace(_unused_ int cgroup, const struct attached *old, _unused_ int program)
{
	kernel.replaced++;
	for (unsigned i = 0; i < kernel.n; i++) {
		if (kernel.list[i].id != old->id)
			continue;
		free(kernel.list[i].insns);
		set_program(&kernel.list[i], old->id + 100, kernel.copy, kernel.copy_n);
	}
	return 0;
}

/* It is gone, whatever the answer. */
int attached_remove(_unused_ int cgroup, const struct attached *old)
{
	kernel.removed++;
	for (unsigned i = 0; i < kernel.n; i++) {
		if (kernel.list[i].id != old->id)
			continue;
		free(kernel.list[i].insns);
		kernel.list[i] = kernel.list[--kernel.n];
		break;
	}
	return kernel.removing;
}

static const struct wanted_devices gpu0 = { .list = { { 195, 0 }, { 195, 255 } }, .n = 2 };
static const struct wanted_devices gpu1 = { .list = { { 195, 1 }, { 195, 255 } }, .n = 2 };
static struct change change;
static struct devcgroup_why why;

static struct place place_v2(void)
{
	struct place place = PLACE_NONE;

	place.at[HIERARCHY_V2].fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	strcpy(place.at[HIERARCHY_V2].path, "/a.service");
	return place;
}

static int begin(_unused_ void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static int end(_unused_ void **state)
{
	for (unsigned i = 0; i < kernel.n; i++)
		free(kernel.list[i].insns);
	return 0;
}

/* The owner's, attached anew beside a copy of ours. */
static void attach_copy_and_original(void)
{
	struct rules_said said = { .devices = { { 195, 0 } }, .n = 1, .name = "owner", .id = 1 };
	struct bpf_insn insns[PROGRAM_RULES_MAX + 2];
	unsigned n = program_rules(&said, insns);

	memcpy(insns + n, deny, sizeof(deny));
	set_program(&kernel.list[0], 2, insns, n + 2);
	set_program(&kernel.list[1], 3, deny, 2);
	kernel.n = 2;
}

static void an_exchange_is_told_though_the_stale_copy_has_gone(_unused_ void **state)
{
	struct place place = place_v2();

	attach_copy_and_original();
	kernel.removing = -ENOENT;
	assert_int_equal(devcgroup_allow(&place, &gpu0, &change, &why), 0);
	assert_int_equal(kernel.replaced, 1);
	assert_int_equal(kernel.removed, 1);
	assert_true(change.changed[HIERARCHY_V2]);
	assert_non_null(strstr(change.done, "was exchanged"));
	place_done(&place);
}

static void an_exchange_is_told_though_the_stale_copy_stays(_unused_ void **state)
{
	struct place place = place_v2();

	attach_copy_and_original();
	kernel.removing = -EPERM;
	assert_int_equal(devcgroup_allow(&place, &gpu0, &change, &why), -EPERM);
	assert_true(change.changed[HIERARCHY_V2]);
	assert_non_null(strstr(change.done, "was exchanged"));
	place_done(&place);
}

static void what_was_not_read_completely_is_left_alone(_unused_ void **state)
{
	struct place place = place_v2();

	attach_copy_and_original();
	kernel.incomplete = true;
	assert_int_equal(devcgroup_allow(&place, &gpu0, &change, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "more than 512 BPF programs"));
	assert_int_equal(devcgroup_undo(&place, &change, &why), -ENOTSUP);
	assert_int_equal(kernel.replaced + kernel.removed + kernel.loaded, 0);
	place_done(&place);
}

static void what_was_allowed_before_stays_allowed(_unused_ void **state)
{
	struct place place = place_v2();
	struct rules_said said;

	set_program(&kernel.list[0], 1, deny, 2);
	kernel.n = 1;
	assert_int_equal(devcgroup_allow(&place, &gpu0, &change, &why), 0);
	assert_int_equal(devcgroup_allow(&place, &gpu1, &change, &why), 0);
	assert_int_equal(kernel.replaced, 2);
	assert_true(program_ours(kernel.list[0].insns, kernel.list[0].n, &said) > 0);
	assert_int_equal(said.n, 3); /* 195:0, 195:255, 195:1 */
	assert_int_equal(said.id, 1);
	place_done(&place);
}

/* ---- version 1 ---- */

struct folder {
	char path[32];
	struct place place;
};

static void write_file(const struct folder *f, const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, 0666), 0);
}

static void make_v1(struct folder *f, const char *list)
{
	*f = (struct folder){ .place = PLACE_NONE };
	strcpy(f->path, "/tmp/test-allow.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	assert_int_equal(chmod(f->path, 0755), 0);
	write_file(f, "devices.list", list);
	write_file(f, "devices.allow", "");
	write_file(f, "devices.deny", "");
	f->place.at[HIERARCHY_V1].fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	strcpy(f->place.at[HIERARCHY_V1].path, "/b.service");
}

static void remove_v1(struct folder *f)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", f->path);
	assert_int_equal(system(command), 0);
	place_done(&f->place);
}

static void drop_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, sets) < 0)
		_exit(99);
	sets[0].effective &= ~(1U << CAP_SYS_ADMIN);
	sets[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, sets) < 0)
		_exit(99);
}

static int undo(const struct folder *f)
{
	return devcgroup_undo(&f->place, &change, &why);
}

static int allow(const struct folder *f)
{
	return devcgroup_allow(&f->place, &gpu0, &change, &why);
}

/* As root, but without CAP_SYS_ADMIN: whether it says so. */
static void assert_needs_admin(int (*act)(const struct folder *), const struct folder *f)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		drop_admin();
		_exit(act(f) == -EPERM && strstr(why.text, "CAP_SYS_ADMIN") && !strstr(why.text, "above") ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void without_the_capability_it_is_not_said_that_there_is_nothing(_unused_ void **state)
{
	struct folder f;

	make_v1(&f, "c 1:3 rwm\n");
	assert_needs_admin(undo, &f);
	assert_needs_admin(allow, &f);
	remove_v1(&f);
}

/* It is unknown, whatever the list says: exceptions are not in it. */
static void a_list_that_allows_all_says_nothing(_unused_ void **state)
{
	struct policy *policy = NULL;
	struct access access;
	struct folder f;

	make_v1(&f, "a *:* rwm\n");
	assert_int_equal(policy_read(&f.place, &policy, &why), 0);
	policy_ask(policy, 195, 0, &access);
	assert_int_equal(access.state, ACCESS_UNKNOWN);
	assert_int_equal(access.granted, 0);
	assert_true(access.unshown);
	assert_non_null(strstr(access.why, "exception"));
	policy_free(policy);
	assert_int_equal(allow(&f), 0);
	assert_true(change.unsure);
	assert_false(change.changed[HIERARCHY_V1]);
	assert_non_null(strstr(change.note, "exception"));
	remove_v1(&f);
}

/* What denies is told, though version 1 hides what it does. */
static void what_denies_comes_before_what_is_unknown(_unused_ void **state)
{
	struct policy *policy = NULL;
	struct access access;
	struct folder f;

	make_v1(&f, "a *:* rwm\n");
	f.place.at[HIERARCHY_V2] = place_v2().at[HIERARCHY_V2];
	set_program(&kernel.list[0], 1, deny, 2);
	kernel.n = 1;
	assert_int_equal(policy_read(&f.place, &policy, &why), 0);
	assert_true(policy_withholds_wanted(policy, &gpu0, &access));
	assert_int_equal(access.state, ACCESS_DENIED);
	policy_free(policy);
	/* One is helped, and of the other it is said. */
	assert_int_equal(allow(&f), 0);
	assert_true(change.changed[HIERARCHY_V2]);
	assert_true(change.unsure);
	remove_v1(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_exchange_is_told_though_the_stale_copy_has_gone, begin,
						end),
		cmocka_unit_test_setup_teardown(an_exchange_is_told_though_the_stale_copy_stays, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_read_completely_is_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(what_was_allowed_before_stays_allowed, begin, end),
		cmocka_unit_test_setup_teardown(without_the_capability_it_is_not_said_that_there_is_nothing,
						begin, end),
		cmocka_unit_test_setup_teardown(a_list_that_allows_all_says_nothing, begin, end),
		cmocka_unit_test_setup_teardown(what_denies_comes_before_what_is_unknown, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
