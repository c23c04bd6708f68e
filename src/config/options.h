// SPDX-License-Identifier: Apache-2.0
/*
 * Options: one table (config/options.def), four origins. A flag takes precedence over the environment, then
 * the configuration file, then the default. Option a.b_c is the flag --a-b-c, the environment variable
 * GPUSONDE_A_B_C and the key `a: {b_c: ...}`.
 *
 * Loading does not stop at the first error: each error becomes a line in the caller's buffer with location,
 * cause and remedy. Values are validated when they are set, so users of options need no further checks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Commands that an option or flag applies to; the file and the environment may contain options of any. */
enum use {
	USE_AGENT = 1 << 0,
	USE_READ = 1 << 1, /* gpus, ps, snapshot */
	USE_CONTROL = 1 << 2, /* release, resume */
	USE_DOCTOR = 1 << 3,
	USE_ATOPGPUD = 1 << 4,
	USE_HELP = 1 << 5,
	USE_PROBES = 1 << 6,
	USE_TRACE = 1 << 7,
	USE_INSPECT = 1 << 8,
	USE_PS = 1 << 9, /* of USE_READ, ps alone */
	USE_CGROUP = 1 << 10,
	USE_RECORD = 1 << 11, /* also of USE_CONTROL */
	USE_ANALYZE = 1 << 12,
	USE_REPLAY = 1 << 13,
	USE_REPORT = 1 << 14,
	USE_ROWS = 1 << 15, /* of USE_READ, gpus and ps */
	USE_MCP = 1 << 16,
	USE_TOP = 1 << 17,
	USE_DIFF = 1 << 18,
	USE_EXPLAIN = 1 << 19,
	USE_CHECK = 1 << 20,
	USE_LINT = 1 << 21,
	USE_TABLES = USE_READ | USE_DOCTOR | USE_PROBES | USE_TRACE | USE_INSPECT | USE_CGROUP | USE_ANALYZE |
		     USE_REPLAY | USE_EXPLAIN,
	USE_SAMPLE = USE_AGENT | USE_READ | USE_TOP | USE_DOCTOR | USE_ATOPGPUD | USE_RECORD | USE_EXPLAIN |
		     USE_CHECK,
	USE_ALL = USE_SAMPLE | USE_CONTROL | USE_PROBES | USE_TRACE | USE_INSPECT | USE_CGROUP | USE_ANALYZE |
		  USE_REPLAY | USE_REPORT | USE_DIFF | USE_MCP | USE_LINT,
};

enum option_type {
	OPTION_TEXT,
	OPTION_BOOL,
	OPTION_DURATION, /* number: nanoseconds */
	OPTION_COUNT,
	OPTION_ADDRESS, /* ADDR:PORT or none */
	OPTION_NAME, /* of a UNIX socket, or none */
	OPTION_MODE, /* number: permission bits */
	OPTION_LEVEL, /* number: syslog's */
	OPTION_SIZE, /* number: bytes */
	OPTION_SHARE, /* number: millionths; written in percent */
	OPTION_TRUST, /* proc/trust.h */
	OPTION_PROBES, /* userprobe/userprobe.h */
	OPTION_SELECTOR, /* selector/selector.h */
	OPTION_TAGS, /* model/node_tag.h */
	OPTION_GROUPS, /* number: bits 1 << enum reading_group */
	OPTION_TRISTATE, /* number: enum tristate */
	OPTION_EXPORTER, /* config/exporter.h */
	OPTION_URL_PATH, /* the same */
	OPTION_TYPES,
};

/* How the text of an option's second environment variable becomes the option's. */
enum env_form {
	ENV_AS_IT_IS,
	ENV_PORT, /* "6061": the address ":6061" */
	ENV_SECONDS, /* "10": the duration "10s" */
	ENV_MILLISECONDS, /* "30000": "30000ms" */
	ENV_BOOL, /* as Go's programs write it: "1", "t", "TRUE" */
	ENV_LEVEL, /* words of other programs' logs: "warn", "trace", "INFO" */
	ENV_FORMS,
};

enum tristate { TRISTATE_NO, TRISTATE_YES, TRISTATE_AUTO };

struct option {
	const char *section, *name, *key; /* "sample", "period", "sample.period" */
	enum option_type type;
	const char *initial; /* the default, in the option's syntax */
	const char *empty; /* the text may be empty, with this meaning; else NULL */
	const char *value; /* placeholder for help; NULL: that of the type */
	const char *alias; /* a shorter flag, or NULL */
	/*
	 * A second environment variable, of an exporter that gpusonde replaces ("NODE_NAME"), or NULL. Only
	 * for the agent and doctor; empty is as not set, and the option's own variable decides before it.
	 */
	const char *env_alias;
	enum env_form env_form;
	int64_t min, max; /* of a text `max` is its length */
	/*
	 * Of a path whose content gives a right: "": the file, or every one of the folder; else the one of
	 * this name in the folder. NULL: it gives none.
	 */
	const char *secret;
	unsigned uses; /* enum use bits */
	bool restart; /* a running agent cannot change it */
	const char *help;
};

enum option_id {
#define OPTION(section_, name_, ...) OPT_##section_##_##name_,
#include "config/options.def"
	OPTIONS,
};

enum option_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

struct option_value {
	char *text; /* as written */
	int64_t number;
	enum option_origin origin;
	/* "/etc/gpusonde/gpusonde.yaml:3", "GPUSONDE_SAMPLE_PERIOD", "--sample-period"; NULL by default */
	char *where;
};

struct options {
	struct option_value v[OPTIONS];
	char *file; /* the configuration file that was read, NULL none */
};

struct section {
	const char *name, *title;
};

extern const struct option option_table[OPTIONS];
extern const struct section section_table[];
extern const unsigned section_count;

enum { OPTION_NAME_MAX = 64 };
#define OPTIONS_FILE "/etc/gpusonde/gpusonde.yaml"

/* Names derived from the key: "--sample-period", "GPUSONDE_SAMPLE_PERIOD". */
void option_flag(const struct option *option, char ret_flag[static OPTION_NAME_MAX]);
void option_environment(const struct option *option, char ret_name[static OPTION_NAME_MAX]);
const struct option *option_by_flag(const char *flag, size_t length);
const struct option *option_by_key(const char *key);
/* Placeholder for help ("DURATION"), and a description of valid values ("100ms to 1m"). */
const char *option_placeholder(const struct option *option);
void option_describe(const struct option *option, struct strbuf *out);

/* Sets all options to their defaults. -ENOMEM. */
int options_init(struct options *options);
void options_done(struct options *options);

/*
 * Sets one option, unless an origin with higher precedence has set it. For an invalid value appends a line to
 * @errors and returns 0.
 */
int options_set(struct options *options, const struct option *option, const char *text,
		enum option_origin origin, const char *where, struct strbuf *errors);
/*
 * The simulated driver in the driver's place (config/simulate.c): sets nvml.library, and for the driver's
 * process the environment variable GPUSONDE_SIM_SCENARIO. @scenario "": what that names already, else a
 * default.
 */
int options_simulate(struct options *options, const char *scenario, struct strbuf *errors);
/*
 * Reads GPUSONDE_* from the process's environment, and for a command of one of these @uses (enum use bits)
 * the options' second variables (config/options_env.c). Probable typos, and variables of other exporters that
 * have no meaning here, are appended to @warnings. -ENOMEM.
 */
int options_from_environment(struct options *options, unsigned uses, struct strbuf *errors,
			     struct strbuf *warnings);
/* Reads a file (config/options_file.c). Errors are appended to @errors. -ENOMEM. */
int options_from_file(struct options *options, const char *path, struct strbuf *errors);
int options_from_yaml(struct options *options, const char *name, const void *text, size_t length,
		      struct strbuf *errors);

/* Parsers of types that only options use (config/option_value.c). -EINVAL. */
int option_parse_share(const char *text, int64_t *ret_ppm);
int option_parse_tristate(const char *text, int64_t *ret_tristate);

/* NULL if the option is `none` or empty. */
const char *options_text(const struct options *options, enum option_id id);
int64_t options_number(const struct options *options, enum option_id id);
static inline bool options_bool(const struct options *options, enum option_id id)
{
	return options_number(options, id) != 0;
}

/* Documentation from the table (config/options_doc.c). */
/* YAML that can be loaded again, with comments on the origins */
void options_print(const struct options *options, struct strbuf *out);
void options_sample(struct strbuf *out); /* a commented sample file */
void options_help(unsigned use, struct strbuf *out);
/* Only their flags, of two the shorter. */
void options_names(unsigned use, struct strbuf *out);
void options_markdown(struct strbuf *out);
void options_man_flags(struct strbuf *out);
void options_man_keys(struct strbuf *out);
