// SPDX-License-Identifier: Apache-2.0
#include "config/web_access.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/web_config.h"
#include "serve/access.h"
#include "serve/address.h"

enum { FILE_BYTES_MAX = 64 << 10, TOKEN_BYTES_MAX = 256, TOKEN_BYTES_MIN = 16 };

enum { CONFIG_FILE, TOKENS, VIEWS, RECORDINGS, CONTROL, ORIGINS };

const enum option_id web_access_options[WEB_ACCESS_OPTIONS] = {
	[CONFIG_FILE] = OPT_web_config_file, [TOKENS] = OPT_web_tokens,   [VIEWS] = OPT_web_views,
	[RECORDINGS] = OPT_web_recordings,   [CONTROL] = OPT_web_control, [ORIGINS] = OPT_web_origins,
};

static const struct {
	unsigned text;
	enum access_right right;
} rights[] = { { VIEWS, ACCESS_VIEWS }, { RECORDINGS, ACCESS_RECORDINGS }, { CONTROL, ACCESS_CONTROL } };

static int read_config(const char *path, struct strbuf *records, struct strbuf *errors)
{
	_cleanup_free_ char *text = malloc(FILE_BYTES_MAX);
	size_t n = 0;
	int r;

	if (!text)
		return -ENOMEM;
	r = read_file(path, text, FILE_BYTES_MAX, &n);
	if (r == 0)
		return web_config_parse(path, text, n, records, errors);
	strbuf_addf(errors, "web.config_file %s cannot be read: %s; make it readable for the agent's user\n",
		    path, strerror(-r));
	return 0;
}

/* ---- tokens ---- */

/* Its file may end with a line end. */
static const char *trim_token(char *token)
{
	size_t n = strlen(token);

	while (n && isspace((unsigned char)token[n - 1]))
		token[--n] = '\0';
	for (const char *p = token; *p; p++)
		if (!isgraph((unsigned char)*p))
			return "it must be one word, without blanks";
	return n < TOKEN_BYTES_MIN ? "it must have 16 characters or more: openssl rand -hex 32 makes one" :
				     NULL;
}

static void read_token(const char *folder, int fd, const char *name, struct strbuf *records,
		       struct strbuf *errors)
{
	char token[TOKEN_BYTES_MAX];
	uint8_t digest[ACCESS_DIGEST_BYTES];
	int r = read_file_at(fd, name, token, sizeof(token), NULL);
	const char *fault = r < 0 ? strerror(-r) : trim_token(token);

	if (r == 0 && strlen(name) >= ACCESS_NAME_MAX)
		fault = "its name is too long";
	if (fault) {
		strbuf_addf(errors, "web.tokens: %s/%s is no token: %s\n", folder, name, fault);
	} else {
		access_digest(token, strlen(token), digest);
		access_put(records, ACCESS_TOKEN, name, digest, sizeof(digest));
	}
	explicit_bzero(token, sizeof(token));
}

static int is_not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Each file is a token, its name the owner's; as a secret of Kubernetes is mounted. */
static int read_tokens(const char *folder, struct strbuf *records, struct strbuf *errors)
{
	_cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries = NULL;
	int n = fd < 0 ? -1 : scandirat(fd, ".", &entries, is_not_hidden, alphasort);

	if (n < 0) {
		strbuf_addf(errors,
			    "web.tokens %s cannot be read: %s; it must be a folder of files, each a "
			    "token\n",
			    folder, strerror(errno));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		read_token(folder, fd, entries[i]->d_name, records, errors);
		free(entries[i]);
	}
	free(entries);
	if (n == 0)
		strbuf_addf(errors,
			    "web.tokens: %s has no file: put a token there, or leave out the option\n",
			    folder);
	return 0;
}

/* ---- rights ---- */

/* A record for each of @names, separated by commas or blanks. */
static void put_names(const char *names, enum access_kind kind, const char *name, struct strbuf *records)
{
	static const char separators[] = ", \t";

	for (const char *at = names + strspn(names, separators); *at; at += strspn(at, separators)) {
		size_t n = strcspn(at, separators);

		access_put(records, kind, name, at, n);
		at += n;
	}
}

static void put_rights(const char *names, enum access_right right, struct strbuf *records)
{
	const char digit[] = { (char)('0' + (int)right), '\0' };

	if (names && *names && !STRV_EQ(names, "none"))
		put_names(names, ACCESS_MAY, digit, records);
	else
		access_put(records, ACCESS_MAY, digit, "", 0); /* nobody */
}

static void check_names(const struct access *access, struct strbuf *errors)
{
	for (unsigned i = 0; i < access->n; i++) {
		const struct access_record *record = &access->records[i];

		if (record->kind == ACCESS_MAY && (access->users || access->tokens) && *record->text &&
		    !STRV_EQ(record->text, "*") && !access_is_known(access, record->text))
			strbuf_addf(errors,
				    "web.views, web.recordings or web.control name %s, who is neither "
				    "of basic_auth_users nor the name of a token: correct the name\n",
				    record->text);
	}
}

/* What the server would find. */
static int try_records(const struct strbuf *records, struct strbuf *errors)
{
	_cleanup_(access_unrefp) struct access *access = NULL;
	int r = access_new(records->data, records->len, &access, errors);

	if (r == -EINVAL && errors->len == 0)
		strbuf_adds(errors, "web.config_file has a text with a zero byte, or is too long\n");
	if (r < 0)
		return r == -EINVAL ? 0 : r;
	check_names(access, errors);
	return 0;
}

int web_access_read(const char *const texts[WEB_ACCESS_OPTIONS], struct strbuf *records,
		    struct strbuf *errors)
{
	const char *config = texts[CONFIG_FILE], *tokens = texts[TOKENS];
	int r = 0;

	if (config && *config)
		r = read_config(config, records, errors);
	if (r == 0 && tokens && *tokens)
		r = read_tokens(tokens, records, errors);
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++)
		put_rights(texts[rights[i].text], rights[i].right, records);
	if (texts[ORIGINS])
		put_names(texts[ORIGINS], ACCESS_ORIGIN, "", records);
	if (r == 0 && records->failed)
		r = -ENOMEM;
	return r == 0 && errors->len == 0 ? try_records(records, errors) : r;
}

int web_access_of(const struct options *options, struct strbuf *records, struct strbuf *errors)
{
	const char *texts[WEB_ACCESS_OPTIONS];

	for (unsigned i = 0; i < WEB_ACCESS_OPTIONS; i++)
		texts[i] = options_text(options, web_access_options[i]);
	return web_access_read(texts, records, errors);
}

bool web_access_has_files(char *const texts[WEB_ACCESS_OPTIONS])
{
	return (texts[CONFIG_FILE] && *texts[CONFIG_FILE]) || (texts[TOKENS] && *texts[TOKENS]);
}

bool web_is_exposed(const char *address, bool asks)
{
	return address && *address && !asks && !address_is_loopback(address);
}
