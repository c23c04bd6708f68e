// SPDX-License-Identifier: Apache-2.0
#include "agent/owner_files.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "owners/protocol.h"

#define ASK_NS (1900 * NSEC_PER_MSEC) /* with every second tick of a second */
#define PERIOD_NS (10 * NSEC_PER_SEC) /* a file system may be slow */
#define ASK_SOON_NS (900 * NSEC_PER_MSEC) /* once in a tick of a second */
#define ANSWER_NS (10 * NSEC_PER_SEC)
enum { MAX_STUCK = 2 };

struct owner_files {
	struct model *model;
	void (*named)(void *userdata);
	void *userdata;
	struct helper *helper;
	char *root, *job_dir;
	bool asked;
	int64_t asked_ns; /* boot clock; 0: never */
	uint64_t known; /* the tables that the model has; 0: none */
	/* while tables come */
	bool coming;
	uint64_t table;
	struct owner *list;
	uint32_t n, rows; /* that have come, of so many */
	struct allocation *given;
	uint32_t given_n, given_rows;
	/* rows that did not fit, as of the newest answer */
	uint32_t dropped;
	uint64_t given_dropped;
	char logged[128]; /* the error that was logged last */
};

/* ---- answers ---- */

/* An error is logged when it is another one, and when it has passed. */
static void set_state(struct owner_files *files, const char *error)
{
	char text[sizeof(((struct source *)NULL)->error)];

	snprintf(text, sizeof(text), "names of containers: %s", error);
	if (*error && !STRV_EQ(error, files->logged))
		log_warning("%s; what they would tell is left out", text);
	else if (!*error && *files->logged)
		log_notice("names of containers are read again");
	snprintf(files->logged, sizeof(files->logged), "%s", error);
	model_set_source(files->model, SOURCE_FILES, *error ? READING_FAILED : READING_OK,
			 *error ? text : "");
}

static void forget_table(struct owner_files *files)
{
	free(TAKE_PTR(files->list));
	free(TAKE_PTR(files->given));
	files->n = files->rows = files->given_n = files->given_rows = 0;
	files->coming = false;
}

static bool expect_table(struct owner_files *files, const struct owners_answer *answer)
{
	files->list = calloc(MAX(answer->rows, 1u), sizeof(*files->list));
	files->given = calloc(MAX(answer->given_rows, 1u), sizeof(*files->given));
	files->rows = answer->rows;
	files->given_rows = answer->given_rows;
	files->table = answer->table;
	files->coming = files->list && files->given;
	return files->coming;
}

static bool take_part(void *list, size_t size, uint32_t rows, uint32_t *n, const struct owners_answer *answer,
		      const void *part)
{
	if (answer->at != *n || answer->n > rows - *n || (answer->n == 0 && *n < rows))
		return false;
	memcpy((char *)list + *n * size, part, answer->n * size);
	*n += answer->n;
	return true;
}

/* False: it is no next part of a table. */
static bool take_rows(struct owner_files *files, const struct owners_answer *answer)
{
	if (!files->coming && !expect_table(files, answer))
		return false;
	if (answer->table != files->table || answer->rows != files->rows ||
	    answer->given_rows != files->given_rows)
		return false;
	if (!answer->given && files->rows > 0)
		return take_part(files->list, sizeof(files->list[0]), files->rows, &files->n, answer,
				 answer->names);
	if (!answer->given && files->given_rows > 0)
		return false;
	return files->n == files->rows && take_part(files->given, sizeof(files->given[0]), files->given_rows,
						    &files->given_n, answer, answer->allocations);
}

/* The tables are whole. */
static void take_table(struct owner_files *files)
{
	int r = model_set_owners(files->model, SOURCE_FILES, files->list, files->n);

	if (r == 0)
		r = model_set_allocations(files->model, SOURCE_FILES, files->given, files->given_n);
	files->known = r < 0 ? 0 : files->table;
	forget_table(files);
}

/* Those that do not fit stay so, and are counted once. */
static void count_dropped(struct owner_files *files, const struct owners_answer *answer)
{
	if (answer->dropped > files->dropped)
		model_agent_add(files->model, AGENT_DROPPED_OWNERS, answer->dropped - files->dropped);
	if (answer->given_dropped > files->given_dropped)
		model_agent_add(files->model, AGENT_DROPPED_ALLOCATIONS,
				(double)(answer->given_dropped - files->given_dropped));
	files->dropped = answer->dropped;
	files->given_dropped = answer->given_dropped;
}

static bool is_valid(const struct owners_answer *answer, size_t n)
{
	const size_t header = offsetof(struct owners_answer, names);
	size_t row = answer->given ? sizeof(answer->allocations[0]) : sizeof(answer->names[0]);

	return n >= header && answer->n <= OWNERS_ROWS && n == header + answer->n * row &&
	       answer->rows <= OWNERS_MAX && answer->given_rows <= ALLOCATIONS_MAX && answer->table != 0;
}

static void on_answer(const void *message, size_t n, int fd, void *userdata)
{
	static struct owners_answer answer;
	struct owner_files *files = userdata;
	char error[sizeof(answer.error)];
	bool wanted;

	closep(&fd);
	memcpy(&answer, message, MIN(n, sizeof(answer)));
	if (n > sizeof(answer) || !files->asked || !is_valid(&answer, n) ||
	    (answer.same ? answer.table != files->known : !take_rows(files, &answer))) {
		helper_reject(files->helper);
		return;
	}
	if (!answer.same && (files->n < files->rows || files->given_n < files->given_rows))
		return; /* more comes */
	files->asked = false;
	helper_deadline(files->helper, 0);
	wanted = !answer.same && model_wants_owners(files->model);
	if (!answer.same)
		take_table(files);
	count_dropped(files, &answer);
	memcpy(error, answer.error, sizeof(error));
	error[sizeof(error) - 1] = '\0';
	utf8_sanitize(error);
	set_state(files, error);
	if (wanted && files->named)
		files->named(files->userdata);
}

static void on_helper_lost(bool hung, void *userdata)
{
	struct owner_files *files = userdata;

	files->asked = false;
	forget_table(files);
	files->known = 0;
	set_state(files, hung ? "their files cannot be read: a file system hangs" :
				"the process that reads them, gpusonde-owners, ended");
}

/* ---- questions ---- */

static void ask_helper(struct owner_files *files, int64_t now_ns)
{
	static struct owners_question question;
	int r;

	question = (struct owners_question){ .version = GPUSONDE_VERSION, .known = files->known };
	snprintf(question.root, sizeof(question.root), "%s", files->root);
	snprintf(question.job_dir, sizeof(question.job_dir), "%s", files->job_dir);
	r = helper_send(files->helper, &question, sizeof(question), -1);
	if (r == -EAGAIN)
		return; /* with the next tick */
	files->asked_ns = now_ns;
	if (r < 0) {
		set_state(files, r == -EBUSY ? "too many processes that read them hang" : strerror(-r));
		return;
	}
	files->asked = true;
	helper_deadline(files->helper, ANSWER_NS);
}

void owner_files_tick(struct owner_files *files)
{
	int64_t now_ns = clock_boot_ns(), after_ns = model_wants_owners(files->model) ? ASK_SOON_NS : ASK_NS;

	if (!files->asked && (files->asked_ns == 0 || now_ns - files->asked_ns >= after_ns))
		ask_helper(files, now_ns);
}

/* ---- life ---- */

int owner_files_new(sd_event *event, struct model *model, const struct owner_files_config *config,
		    struct owner_files **ret_files)
{
	static const struct helper_ops ops = { on_answer, on_helper_lost };
	const struct helper_config helper = {
		.program = config->program ? config->program : "gpusonde-owners",
		.role = "files",
		.capabilities = OWNERS_CAPABILITIES,
		.max_stuck = MAX_STUCK,
	};
	struct owner_files *files = calloc(1, sizeof(*files));
	int r;

	if (!files)
		return -ENOMEM;
	files->model = model;
	files->named = config->named;
	files->userdata = config->userdata;
	files->root = strdup(config->root);
	files->job_dir = strdup(config->job_dir ? config->job_dir : "");
	r = files->root && files->job_dir ? helper_new(event, &helper, &ops, files, &files->helper) : -ENOMEM;
	if (r < 0) {
		owner_files_free(files);
		return r;
	}
	model_set_source_period(model, SOURCE_FILES, PERIOD_NS);
	*ret_files = files;
	return 0;
}

void owner_files_free(struct owner_files *files)
{
	if (!files)
		return;
	helper_free(files->helper);
	forget_table(files);
	free(files->root);
	free(files->job_dir);
	free(files);
}

pid_t owner_files_pid(const struct owner_files *files)
{
	struct helper_stats stats;

	helper_stats(files->helper, &stats);
	return stats.pid;
}
