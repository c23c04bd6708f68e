// SPDX-License-Identifier: Apache-2.0
#include "needs.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "config/places.h"

/* Run by root, most of this is done as somebody else: the rules differ for root. */
enum { OTHER_UID = 54321 };

struct fixture {
	struct options options;
	struct strbuf errors;
	char folder[64];
	bool became;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(options_init(&f->options), 0);
	strbuf_init(&f->errors, 0);
	strcpy(f->folder, "/tmp/gpusonde-places-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	unsetenv("STATE_DIRECTORY");
	unsetenv("XDG_STATE_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	if (geteuid() == 0) {
		assert_int_equal(chown(f->folder, OTHER_UID, OTHER_UID), 0);
		assert_int_equal(seteuid(OTHER_UID), 0);
		f->became = true;
	}
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->became)
		assert_int_equal(seteuid(0), 0);
	rmdir(f->folder);
	options_done(&f->options);
	strbuf_done(&f->errors);
	free(f);
	return 0;
}

static void set(struct fixture *f, enum option_id id, const char *text)
{
	assert_int_equal(options_set(&f->options, &option_table[id], text, ORIGIN_FLAG, "test", &f->errors),
			 0);
	assert_string_equal(f->errors.data, "");
}

#define ONLY_ROOT "only root can become another user"

static bool may_write(const char *folder)
{
	return faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) == 0;
}

static void root_uses_the_system(void **state)
{
	struct fixture *f = *state;
	struct place place, places[PLACE_SOCKETS];

	if (!f->became)
		need_unmet(ONLY_ROOT);
	assert_int_equal(seteuid(0), 0);
	setenv("XDG_RUNTIME_DIR", f->folder, 1);
	assert_int_equal(place_socket(&f->options, true, &place), 0);
	assert_string_equal(place.path, PLACE_SOCKET);
	assert_int_equal(places_of_socket(&f->options, places), 1);
	assert_string_equal(places[0].path, PLACE_SOCKET);
	assert_string_equal(place_state(&f->options, &place), PLACE_STATE);
}

static void a_user_has_a_runtime_folder(void **state)
{
	struct fixture *f = *state;
	struct place place, places[PLACE_SOCKETS];
	char wanted[128];

	setenv("XDG_RUNTIME_DIR", f->folder, 1);
	snprintf(wanted, sizeof(wanted), "%s/gpusonde.sock", f->folder);
	assert_int_equal(place_socket(&f->options, true, &place), 0);
	if (!may_write("/run/gpusonde"))
		assert_string_equal(place.path, wanted);
	assert_int_equal(places_of_socket(&f->options, places), 2);
	assert_string_equal(places[0].path, wanted);
	assert_string_equal(places[1].path, PLACE_SOCKET);
}

/* Below /tmp only a folder that is ours, and closed to others, is believed. */
static void a_folder_in_tmp_must_be_private(void **state)
{
	struct fixture *f = *state;
	struct place place, places[PLACE_SOCKETS];
	char folder[64];

	if (!f->became) /* a real user's folder may be in use */
		need_unmet(ONLY_ROOT);
	snprintf(folder, sizeof(folder), "/tmp/gpusonde-%u", geteuid());
	rmdir(folder);
	assert_int_equal(places_of_socket(&f->options, places), 1);
	assert_int_equal(place_socket(&f->options, false, &place), -EPERM);
	assert_int_equal(place_socket(&f->options, true, &place), 0);
	assert_int_equal(strncmp(place.path, folder, strlen(folder)), 0);
	assert_int_equal(places_of_socket(&f->options, places), 2);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(place_socket(&f->options, true, &place), -EPERM);
	assert_int_equal(places_of_socket(&f->options, places), 1);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(symlink(f->folder, folder), 0);
	assert_int_equal(place_socket(&f->options, true, &place), -EPERM);
	assert_int_equal(unlink(folder), 0);
}

static void an_option_outranks_the_rule(void **state)
{
	struct fixture *f = *state;
	struct place place, places[PLACE_SOCKETS];

	set(f, OPT_control_socket, "/srv/socket");
	assert_int_equal(place_socket(&f->options, true, &place), 0);
	assert_string_equal(place.path, "/srv/socket");
	assert_int_equal(places_of_socket(&f->options, places), 1);
	assert_string_equal(places[0].path, "/srv/socket");
	set(f, OPT_control_socket, "none");
	assert_int_equal(place_socket(&f->options, true, &place), -ENOENT);
	assert_int_equal(places_of_socket(&f->options, places), 0);
	assert_string_equal(place_of_option(&f->options, OPT_control_socket, &place), "none");
}

static void state_folder(void **state)
{
	struct fixture *f = *state;
	struct place place;

	setenv("HOME", "/home/somebody", 1);
	if (!may_write(PLACE_STATE))
		assert_string_equal(place_state(&f->options, &place), "/home/somebody/.local/state/gpusonde");
	setenv("XDG_STATE_HOME", "relative", 1);
	if (!may_write(PLACE_STATE))
		assert_string_equal(place_state(&f->options, &place), "/home/somebody/.local/state/gpusonde");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/", 1);
	if (!may_write(PLACE_STATE))
		assert_string_equal(place_state(&f->options, &place), "/.local/state/gpusonde");
	setenv("XDG_STATE_HOME", "/srv/states/", 1);
	if (!may_write(PLACE_STATE))
		assert_string_equal(place_state(&f->options, &place), "/srv/states/gpusonde");
	setenv("STATE_DIRECTORY", "/var/lib/other", 1);
	assert_string_equal(place_state(&f->options, &place), "/var/lib/other");
	set(f, OPT_state_dir, "/srv/state");
	assert_string_equal(place_state(&f->options, &place), "/srv/state");
}

static void folders_are_made_to_the_last(void **state)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/a/b", f->folder);
	assert_int_equal(place_make_folder(path, 0755), 0);
	assert_int_equal(place_make_folder(path, 0755), 0);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/a", f->folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(place_make_folder("/proc/nothing/here", 0755), -ENOENT);
	/* What stands in the way, not what is missing for it. */
	if (!f->became)
		need_unmet(ONLY_ROOT);
	assert_int_equal(place_make_folder("/var/lib/gpusonde-none/a/b", 0755), -EACCES);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(root_uses_the_system),
		CASE(a_user_has_a_runtime_folder),
		CASE(a_folder_in_tmp_must_be_private),
		CASE(an_option_outranks_the_rule),
		CASE(state_folder),
		CASE(folders_are_made_to_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
