// SPDX-License-Identifier: Apache-2.0
#include "config/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/text.h"
#include "config/exporter.h"
#include "config/nearest.h"
#include "model/snapshot.h"
#include "proc/trust.h"
#include "serve/address.h"
#include "selector/selector.h"
#include "userprobe/userprobe.h"

const struct option option_table[OPTIONS] = {
#define OPTION(section_, name_, ...) \
	{ .section = #section_, .name = #name_, .key = #section_ "." #name_, __VA_ARGS__ },
#include "config/options.def"
};

const struct section section_table[] = {
#define SECTION(name_, title_) { #name_, title_ },
#include "config/options.def"
};
const unsigned section_count = ARRAY_SIZE(section_table);

static const char *const level_names[] = {
	[LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
	[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

static const char *const placeholders[OPTION_TYPES] = {
	[OPTION_TEXT] = "TEXT",
	[OPTION_BOOL] = "BOOL",
	[OPTION_DURATION] = "DURATION",
	[OPTION_COUNT] = "N",
	[OPTION_ADDRESS] = "ADDR:PORT|none",
	[OPTION_NAME] = "NAME|none",
	[OPTION_MODE] = "OCTAL",
	[OPTION_LEVEL] = "LEVEL",
	[OPTION_SIZE] = "SIZE",
	[OPTION_SHARE] = "PERCENT",
	[OPTION_TRISTATE] = "auto|yes|no",
	[OPTION_TRUST] = "LIST",
	[OPTION_GROUPS] = "GROUPS",
	[OPTION_TAGS] = "TAGS",
	[OPTION_PROBES] = "LIBRARY:PATTERN",
	[OPTION_SELECTOR] = "SELECTOR",
	[OPTION_EXPORTER] = "HOST|URL",
	[OPTION_URL_PATH] = "/PATH",
};

enum {
	TEXT_MAX = 4000,
	SOCKET_NAME_MAX = 107, /* sun_path of unix(7), less its leading or trailing NUL */
};

void option_flag(const struct option *option, char ret_flag[static OPTION_NAME_MAX])
{
	int n = snprintf(ret_flag, OPTION_NAME_MAX, "--%s", option->key);

	for (int i = 2; i < n && i < OPTION_NAME_MAX; i++)
		if (ret_flag[i] == '.' || ret_flag[i] == '_')
			ret_flag[i] = '-';
}

void option_environment(const struct option *option, char ret_name[static OPTION_NAME_MAX])
{
	int n = snprintf(ret_name, OPTION_NAME_MAX, "GPUSONDE_%s", option->key);

	for (int i = 0; i < n && i < OPTION_NAME_MAX; i++)
		ret_name[i] = ret_name[i] == '.' ? '_' : (char)toupper((unsigned char)ret_name[i]);
}

static bool equals(const char *name, const char *text, size_t length)
{
	return strlen(name) == length && memcmp(name, text, length) == 0;
}

const struct option *option_by_flag(const char *flag, size_t length)
{
	char name[OPTION_NAME_MAX];

	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option *o = &option_table[i];

		option_flag(o, name);
		if (equals(name, flag, length) || (o->alias && equals(o->alias, flag, length)))
			return o;
	}
	return NULL;
}

const struct option *option_by_key(const char *key)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (STRV_EQ(option_table[i].key, key))
			return &option_table[i];
	return NULL;
}

const char *option_placeholder(const struct option *option)
{
	return option->value ? option->value : placeholders[option->type];
}

/* Uses the largest unit that divides the value, in parse_duration_ns()'s syntax. */
static void describe_duration(int64_t ns, struct strbuf *out)
{
	if (ns % NSEC_PER_SEC)
		strbuf_addf(out, "%lldms", (long long)(ns / NSEC_PER_MSEC));
	else if (ns % (60 * NSEC_PER_SEC))
		strbuf_addf(out, "%llds", (long long)(ns / NSEC_PER_SEC));
	else
		strbuf_addf(out, "%lldm", (long long)(ns / (60 * NSEC_PER_SEC)));
}

static size_t text_max(const struct option *option)
{
	return option->max ? (size_t)option->max : TEXT_MAX;
}

void option_describe(const struct option *option, struct strbuf *out)
{
	switch (option->type) {
	case OPTION_BOOL:
		strbuf_adds(out, "true or false (or yes, no, on, off, 1, 0)");
		break;
	case OPTION_DURATION:
		strbuf_adds(out, "a number and a unit, ");
		describe_duration(option->min, out);
		strbuf_adds(out, " to ");
		describe_duration(option->max, out);
		break;
	case OPTION_COUNT:
		strbuf_addf(out, "a whole number, %lld to %lld", (long long)option->min,
			    (long long)option->max);
		break;
	case OPTION_ADDRESS:
		strbuf_adds(out,
			    "a numeric address or localhost, and a port, such as 127.0.0.1:9470, [::1]:9470 "
			    "or :9470 (all addresses); or none");
		break;
	case OPTION_NAME:
		strbuf_addf(out, "a name of 1 to %d bytes, or none", SOCKET_NAME_MAX);
		break;
	case OPTION_MODE:
		strbuf_addf(out, "an octal number, 0 to 0%llo", (unsigned long long)option->max);
		break;
	case OPTION_LEVEL:
		strbuf_adds(out, "error, warning, notice, info or debug");
		break;
	case OPTION_SIZE:
		strbuf_adds(out, "a whole number and KiB, MiB or GiB, ");
		size_describe(option->min, out);
		strbuf_adds(out, " to ");
		size_describe(option->max, out);
		break;
	case OPTION_SHARE:
		strbuf_addf(out, "a percentage, %g%% to %g%%", (double)option->min / 1e4,
			    (double)option->max / 1e4);
		break;
	case OPTION_TRISTATE:
		strbuf_adds(out, "auto, yes or no");
		break;
	case OPTION_GROUPS:
		strbuf_adds(out, "names separated by commas, of");
		for (unsigned i = 0; i < READING_GROUPS; i++)
			strbuf_addf(out, "%s %s", i > 0 ? "," : "", reading_groups[i].name);
		break;
	case OPTION_PROBES:
		strbuf_addf(out,
			    "LIBRARY:PATTERN[,PATTERN...] [argN[:TYPE]...] [returns[:RESULT]]; up to %d are "
			    "separated by semicolons",
			    USER_PROBES_MAX);
		break;
	case OPTION_TAGS:
		strbuf_addf(out,
			    "key:value, several separated by commas, at most %d; keys of letters, digits, "
			    "_, ., / "
			    "and -, each once, not beginning with gpu_",
			    NODE_TAGS_MAX);
		break;
	case OPTION_TRUST:
		strbuf_adds(out, "/PATH, fstype:NAME or user:NAME of a user of this machine; several are "
				 "separated by commas");
		break;
	case OPTION_EXPORTER:
		strbuf_adds(out,
			    "a host's name or address, or a URL that begins with http:// or https:// and has "
			    "no user, query or fragment");
		break;
	case OPTION_URL_PATH:
		strbuf_adds(out, "a path that begins with /, of printable ASCII without blanks and #");
		break;
	case OPTION_SELECTOR:
		strbuf_addf(out, "a label selector of at most %zu bytes", text_max(option));
		break;
	case OPTION_TEXT:
	case OPTION_TYPES:
		strbuf_addf(out, "text of %s%zu bytes", option->empty ? "at most " : "1 to ",
			    text_max(option));
		break;
	}
}

static int parse_tags(const char *text)
{
	struct node_tag tags[NODE_TAGS_MAX];
	uint32_t n;

	return node_tags_parse(text, tags, &n);
}

static int parse_address(const char *text)
{
	struct addresses addresses;

	return STRV_EQ(text, "none") ? 0 : address_parse(text, &addresses);
}

static int parse_trust(const char *text)
{
	_cleanup_(trust_freep) struct trust *trust = NULL;

	return strlen(text) > TEXT_MAX ? -EINVAL : trust_new(text, &trust);
}

static int parse_mode(const char *text, int64_t *ret_number)
{
	size_t n = strlen(text);

	if (n < 1 || n > 5 || strspn(text, "01234567") != n)
		return -EINVAL;
	*ret_number = (int64_t)strtoul(text, NULL, 8);
	return 0;
}

static int parse_level(const char *text, int64_t *ret_number)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (level_names[i] && STRV_EQ(level_names[i], text)) {
			*ret_number = (int64_t)i;
			return 0;
		}
	return -EINVAL;
}

static int parse_value(const struct option *option, const char *text, int64_t *ret_number)
{
	size_t length = strlen(text);
	uint64_t count;
	bool flag;
	int r;

	switch (option->type) {
	case OPTION_BOOL:
		r = parse_bool(text, &flag);
		if (r == 0)
			*ret_number = flag;
		return r;
	case OPTION_COUNT:
		r = parse_u64(text, &count);
		if (r == 0)
			*ret_number = count > INT64_MAX ? INT64_MAX : (int64_t)count;
		return r;
	case OPTION_DURATION:
		return parse_duration_ns(text, ret_number);
	case OPTION_ADDRESS:
		return parse_address(text);
	case OPTION_MODE:
		return parse_mode(text, ret_number);
	case OPTION_LEVEL:
		return parse_level(text, ret_number);
	case OPTION_SIZE:
		return size_parse(text, ret_number);
	case OPTION_SHARE:
		return option_parse_share(text, ret_number);
	case OPTION_TRISTATE:
		return option_parse_tristate(text, ret_number);
	case OPTION_GROUPS:
		return reading_groups_parse(text, ret_number);
	case OPTION_TAGS:
		return length > TEXT_MAX ? -EINVAL : parse_tags(text);
	case OPTION_TRUST:
		return parse_trust(text);
	case OPTION_PROBES:
		return length > TEXT_MAX ? -EINVAL : 0; /* probes_are_valid() */
	case OPTION_SELECTOR:
		return length > text_max(option) ? -EINVAL : 0; /* selector_is_valid() */
	case OPTION_EXPORTER:
		return length == 0 || exporter_is_valid(text) ? 0 : -EINVAL;
	case OPTION_URL_PATH:
		return exporter_path_is_valid(text) ? 0 : -EINVAL;
	case OPTION_NAME:
		return (length < 1 && !option->empty) || length > SOCKET_NAME_MAX ? -EINVAL : 0;
	case OPTION_TEXT:
	case OPTION_TYPES:
		break;
	}
	return (length == 0 && !option->empty) || length > text_max(option) ? -EINVAL : 0;
}

static bool max_is_length(const struct option *option)
{
	return option->type == OPTION_TEXT || option->type == OPTION_SELECTOR;
}

static bool accepts(const struct option *option, const char *text, int64_t *ret_number)
{
	int64_t number = 0;

	/* Control characters in a path or an address could forge lines in logs and --print-config. */
	if (!text_is_printable(text) || parse_value(option, text, &number) < 0)
		return false;
	if (!max_is_length(option) && option->max && (number < option->min || number > option->max))
		return false;
	*ret_number = number;
	return true;
}

/* Its parser says itself what is wrong. */
static bool probes_are_valid(const char *text, const char *where, struct strbuf *errors)
{
	struct user_probes probes;
	struct strbuf why;
	bool valid;

	strbuf_init(&why, 0);
	valid = user_probes_parse(text, &probes, &why) == 0;
	if (!valid)
		strbuf_addf(errors, "%s: %s", where, why.data);
	strbuf_done(&why);
	return valid;
}

static bool selector_is_valid(const struct option *option, const char *text, const char *where,
			      struct strbuf *errors)
{
	_cleanup_(selector_freep) struct selector *selector = NULL;
	char why[128] = "out of memory";

	if (selector_new(text, why, sizeof(why), &selector) == 0)
		return true;
	strbuf_addf(errors, "%s: %s cannot be \"%.80s\": %s\n", where, option->key, text, why);
	return false;
}

/* A flag that is given several times adds a probe each time. -ENOMEM. */
static int add_probes(const struct option_value *before, const char *text, char **ret_text)
{
	return asprintf(ret_text, "%s;%s", before->text, text) < 0 ? -ENOMEM : 0;
}

int options_set(struct options *options, const struct option *option, const char *text,
		enum option_origin origin, const char *where, struct strbuf *errors)
{
	struct option_value *v = &options->v[option - option_table];
	_cleanup_free_ char *text_copy = NULL, *where_copy = NULL, *all = NULL;
	int64_t number;

	if (option->type == OPTION_PROBES && origin == ORIGIN_FLAG && v->origin == ORIGIN_FLAG && v->text) {
		if (add_probes(v, text, &all) < 0)
			return -ENOMEM;
		text = all;
	}
	if (!accepts(option, text, &number)) {
		strbuf_addf(errors, "%s: %s cannot be \"%.80s\": it must be ", where, option->key, text);
		option_describe(option, errors);
		strbuf_addc(errors, '\n');
		return 0;
	}
	if (option->type == OPTION_PROBES && !probes_are_valid(text, where, errors))
		return 0;
	if (option->type == OPTION_SELECTOR && !selector_is_valid(option, text, where, errors))
		return 0;
	if (v->text && v->origin > origin)
		return 0;
	text_copy = strdup(text);
	where_copy = where ? strdup(where) : NULL;
	if (!text_copy || (where && !where_copy))
		return -ENOMEM;
	free(v->text);
	free(v->where);
	*v = (struct option_value){ TAKE_PTR(text_copy), number, origin, TAKE_PTR(where_copy) };
	return 0;
}

int options_init(struct options *options)
{
	struct strbuf errors;

	*options = (struct options){ 0 };
	strbuf_init(&errors, 0);
	for (unsigned i = 0; i < OPTIONS; i++) {
		int r = options_set(options, &option_table[i], option_table[i].initial, ORIGIN_DEFAULT, NULL,
				    &errors);

		if (r < 0 || errors.len > 0) {
			strbuf_done(&errors);
			options_done(options);
			return r < 0 ? r : -EINVAL;
		}
	}
	strbuf_done(&errors);
	return 0;
}

void options_done(struct options *options)
{
	if (!options)
		return;
	for (unsigned i = 0; i < OPTIONS; i++) {
		free(options->v[i].text);
		free(options->v[i].where);
	}
	free(options->file);
	*options = (struct options){ 0 };
}

const char *options_text(const struct options *options, enum option_id id)
{
	const char *text = options->v[id].text;
	enum option_type type = option_table[id].type;

	if (text[0] == 0 || ((type == OPTION_ADDRESS || type == OPTION_NAME) && STRV_EQ(text, "none")))
		return NULL;
	return text;
}

int64_t options_number(const struct options *options, enum option_id id)
{
	return options->v[id].number;
}
