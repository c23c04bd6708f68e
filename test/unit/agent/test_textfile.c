// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/outputs/textfile.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "model/publisher.h"
#include "view/view.h"

#define PATIENCE_NS (60 * NSEC_PER_SEC)

static struct options options;
static struct model *model;
static struct publisher *publisher;
static struct textfile *textfile;
static char folder[] = "/tmp/gpusonde-test-textfile-XXXXXX", path[64];

static int begin(_unused_ void **state)
{
	if (options_init(&options) < 0 || publisher_new(&publisher) < 0 ||
	    model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model) < 0)
		return -1;
	return model_publish(model, publisher);
}

static int end(_unused_ void **state)
{
	textfile_free(textfile);
	textfile = NULL;
	model_free(model);
	publisher_free(publisher);
	options_done(&options);
	return 0;
}

static struct snapshot *newest(_unused_ void *userdata)
{
	return publisher_get(publisher);
}

static void set(enum option_id id, const char *text)
{
	struct strbuf errors;

	strbuf_init(&errors, 0);
	options_set(&options, &option_table[id], text, ORIGIN_FLAG, "test", &errors);
	assert_int_equal(errors.len, 0);
	strbuf_done(&errors);
}

static int start(void)
{
	return textfile_new(&options, &(struct textfile_source){ .newest = newest }, &textfile);
}

static void nobody_wants_it(_unused_ void **state)
{
	assert_int_equal(start(), 0);
	assert_null(textfile);
	set(OPT_textfile_path, "gpusonde.txt");
	assert_int_equal(start(), -EINVAL);
}

/* Of the snapshot that is there: the file has no other text than /metrics. */
static void it_is_the_page(_unused_ void **state)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;
	struct snapshot *snapshot = newest(NULL);
	struct strbuf page;
	char text[4096] = "";
	size_t n = 0;

	strbuf_init(&page, 0);
	assert_int_equal(view_prometheus(snapshot, EXPOSITION_PROMETHEUS, "gpusonde_up", &page), 0);
	snapshot_unref(snapshot);
	assert_true(page.len > 0);
	set(OPT_textfile_path, path);
	set(OPT_textfile_families, "gpusonde_up");
	assert_int_equal(start(), 0);
	while (read_file(path, text, sizeof(text), &n) < 0 && clock_mono_ns() < until_ns)
		usleep(1000);
	assert_string_equal(text, page.data);
	textfile_tick(textfile, model);
	assert_string_equal(textfile_error(textfile), "");
	strbuf_done(&page);
	/* It goes with the agent. */
	textfile_free(textfile);
	textfile = NULL;
	assert_int_equal(access(path, F_OK), -1);
}

static int begin_all(_unused_ void **state)
{
	return mkdtemp(folder) && snprintf(path, sizeof(path), "%s/a.prom", folder) > 0 ? 0 : -1;
}

static int end_all(_unused_ void **state)
{
	return rmdir(folder);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_wants_it),
		TEST(it_is_the_page),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
