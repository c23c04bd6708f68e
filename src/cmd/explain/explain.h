// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde explain": what a GPU, a process or a job does, what slows it down, by which figures, and what is
 * to be done, in sentences.
 *
 *   subject.c    who is meant: GPUs, processes, a job, found in the document of "gpusonde snapshot --json"
 *   figures.c    figures of each by their names in that document: figures.def
 *   gpu.c        what the document alone tells of a GPU
 *   process.c    ... of a process or job
 *   findings.c   what the agent's analysis has found of them: the document of /api/v1/findings
 *   write.c      paragraphs
 *
 * All is collected once, as JSON, and paragraphs are made from that: text and JSON say the same. Figures are
 * members of the two documents, so they are those of every other view.
 */
#pragma once

#include <jansson.h>

#include "analysis/analysis.h"
#include "model/snapshot.h"
#include "view/view.h"

/* What a sentence is about, "topic" in JSON. */
#define TOPICS(TOPIC)                                                         \
	TOPIC(STATE, "state") /* whether it works, how old its figures are */ \
	TOPIC(USE, "use") /* what it does now */                              \
	TOPIC(USERS, "users") /* for whom */                                  \
	TOPIC(SLOWDOWN, "slowdown") /* what slows it down */                  \
	TOPIC(WASTE, "waste") /* what is held and not used */                 \
	TOPIC(ERROR, "error") /* XIDs */                                      \
	TOPIC(FINDING, "finding") /* of the analysis */
enum topic {
#define TOPIC(id_, name_) TOPIC_##id_,
	TOPICS(TOPIC)
#undef TOPIC
};

/* Who is asked for: the operand. */
enum about { ABOUT_ALL, ABOUT_GPU, ABOUT_PROCESS, ABOUT_JOB, ABOUTS };
extern const char *const about_names[ABOUTS]; /* "gpu", also before a colon in the operand */

struct explain {
	json_t *document; /* of "gpusonde snapshot --json" */
	const struct snapshot *s; /* the same, decoded */
	const json_t *findings; /* of /api/v1/findings; NULL: nothing is analysed */
	enum about about;
	const char *name; /* of the GPU, process or job; NULL: all */
	json_t *subjects; /* a list of objects, each with "sentences" */
	bool failed; /* out of memory */
};

/* ---- subjects ---- */

/*
 * Finds out what @operand, which may be NULL, means. -ESRCH, -ENOTUNIQ, with an error for people in
 * @ret_why.
 */
int subject_find(struct explain *explain, const char *operand, char *ret_why, size_t size);
/* Whether the word, as "gpu" of "gpu 3", says what its next word is. */
bool subject_is_kind(const char *word);
/* Whether a row of the document's lists (processes, GPUs) is meant. */
bool subject_has_process(const struct explain *explain, const json_t *process);
/* Is it asked for, or does a process that is use it? */
bool subject_has_gpu(const struct explain *explain, const json_t *gpu);
/* Whether the process is on that GPU, or on an instance of it. */
bool subject_is_on(const json_t *process, const json_t *gpu);

/* ---- sentences ---- */

/* Begins a subject: an object that the list owns. NULL: out of memory, and noted. */
json_t *explain_begin(struct explain *explain, enum about kind, const char *fmt, ...) _printf_(3, 4);

/*
 * Adds a sentence, without its full stop. @figures: members with their values, its reference is taken, NULL:
 * none. @remedy: NULL: there is nothing to be done.
 */
void explain_say(struct explain *explain, json_t *subject, enum topic topic, json_t *figures,
		 const char *remedy, const char *fmt, ...) _printf_(6, 7);
/* As "busy 97 %, memory 62.5 GiB of 79.6 GiB": the figures of figures.def that are known. */
void explain_figures(struct explain *explain, json_t *subject, enum about kind, const json_t *object,
		     const char *words);
/* "62.5 GiB" of a member that is a number of bytes; "-": unknown. */
enum { FIGURE_TEXT = 40 };
void figure_bytes(const json_t *object, const char *path, char text[static FIGURE_TEXT]);
/* The number at @path; false: it is not known. */
bool figure_at(const json_t *object, const char *path, double *ret_value);
/* Adds the member at @path to figures, by that name, if it is known. */
void figure_copy(json_t *figures, const json_t *object, const char *path);

/* The same rule was found by the analysis for this GPU (UUIDs) or process: then it has the better figures. */
bool explain_found(const struct explain *explain, enum analysis_rule rule, const char *uuid, uint32_t pid);

void explain_gpu(struct explain *explain, const json_t *gpu);
void explain_process(struct explain *explain, const json_t *process);
void explain_job(struct explain *explain);
/* Of this process, or if @pid is 0 of this GPU: both are findings' members. */
void explain_findings(struct explain *explain, json_t *subject, const char *uuid, uint32_t pid);
/* Each as a subject of its own, those that have ended, too. */
void explain_every_finding(struct explain *explain);

/* ---- text ---- */

/* Paragraphs of a list of subjects. -ENOMEM. */
int explain_text(const json_t *subjects, const struct table_options *options, struct strbuf *out);
