// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/push_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

static int check_key(const char *key)
{
	if (!*key)
		return -ENODATA;
	for (const char *c = key; *c; c++)
		if (*c <= ' ' || *c > '~')
			return -EINVAL;
	return 0;
}

/* -E2BIG: it does not fit; -EILSEQ: it has a NUL byte. */
static int read_secret(const char *path, char *secret, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n;
	int r = fd < 0 ? -errno : read_fd(fd, secret, size, &n);

	if (r < 0)
		return r;
	while (n > 0 && strchr(" \t\r\n", secret[n - 1]))
		secret[--n] = '\0';
	return strlen(secret) == n ? 0 : -EILSEQ;
}

static int find_secret(const struct push_key *key, char secret[static PUSH_KEY_MAX])
{
	const char *text = key->variable ? getenv(key->variable) : NULL;
	int r = 0;

	if (key->file)
		r = read_secret(key->file, secret, PUSH_KEY_MAX);
	else if (!text || strlen(text) >= PUSH_KEY_MAX)
		r = text ? -E2BIG : -ENODATA;
	else
		strcpy(secret, text);
	return r < 0 ? r : check_key(secret);
}

/* ---- what becomes of it ---- */

/* RFC 4648. @room: of 4 characters for each 3 bytes, and one. */
static void add_base64(const char *text, size_t n, char *room)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t bits = (uint32_t)(uint8_t)text[i] << 16;

		bits |= i + 1 < n ? (uint32_t)(uint8_t)text[i + 1] << 8 : 0;
		bits |= i + 2 < n ? (uint8_t)text[i + 2] : 0;
		*room++ = digits[bits >> 18];
		*room++ = digits[bits >> 12 & 63];
		*room++ = i + 1 < n ? digits[bits >> 6 & 63] : '=';
		*room++ = i + 2 < n ? digits[bits & 63] : '=';
	}
	*room = '\0';
}

static int compose(const struct push_key *key, const char *secret, char ret_key[static PUSH_KEY_MAX])
{
	char both[PUSH_KEY_MAX];
	int n;

	if (!key->user)
		return snprintf(ret_key, PUSH_KEY_MAX, "%s%s", key->scheme ? key->scheme : "", secret) <
				       PUSH_KEY_MAX ?
			       0 :
			       -E2BIG;
	n = snprintf(both, sizeof(both), "%s:%s", key->user, secret);
	if (n >= (PUSH_KEY_MAX - 8) / 4 * 3)
		return -E2BIG;
	strcpy(ret_key, "Basic ");
	add_base64(both, (size_t)n, ret_key + strlen(ret_key));
	explicit_bzero(both, sizeof(both));
	return 0;
}

static int read_key(const struct push_key *key, char ret_key[static PUSH_KEY_MAX])
{
	char secret[PUSH_KEY_MAX];
	int r = find_secret(key, secret);

	if (r == 0)
		r = compose(key, secret, ret_key);
	if (r < 0)
		ret_key[0] = '\0';
	explicit_bzero(secret, sizeof(secret));
	return r;
}

static void explain_key(int r, const char *place, char *error, size_t size)
{
	if (r == -ENODATA)
		snprintf(error, size, "there is no key in %.200s", place);
	else if (r == -EINVAL || r == -EILSEQ)
		snprintf(error, size, "the key in %.200s has other characters than printable ones of ASCII",
			 place);
	else if (r == -E2BIG)
		snprintf(error, size, "the key in %.200s is too long: a header has at most %d bytes", place,
			 PUSH_KEY_MAX - 1);
	else
		snprintf(error, size, "the key cannot be read from %.200s: %s", place, strerror(-r));
}

static void explain_file(int r, const char *path, int max, char *error, size_t size)
{
	if (r == -E2BIG)
		snprintf(error, size, "%.200s has more than %d bytes", path, max);
	else if (r == -EILSEQ)
		snprintf(error, size, "%.200s has a NUL byte: it must be a text", path);
	else
		snprintf(error, size, "%.200s cannot be read: %s", path, strerror(-r));
}

static int read_pem(const char *path, char pem[static PUSH_PEM_MAX], char *error, size_t size)
{
	int r = read_secret(path, pem, PUSH_PEM_MAX);

	if (r < 0)
		explain_file(r, path, PUSH_PEM_MAX - 1, error, size);
	return r;
}

bool push_header_is_valid(const char *line, size_t n)
{
	static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "!#$%&'*+-.^_`|~";
	size_t name = strspn(line, token);
	bool has_value = false;

	if (name == 0 || name >= n || line[name] != ':')
		return false;
	for (size_t i = name + 1; i < n; i++) {
		if (line[i] < ' ' || line[i] > '~')
			return false;
		has_value |= line[i] != ' ';
	}
	return has_value;
}

static int take_headers(const char *text, char headers[static PUSH_HEADERS_MAX])
{
	size_t at = 0;

	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n"), whole = n;

		while (n > 0 && strchr(" \t\r", line[n - 1]))
			n--;
		if (n > 0 && !push_header_is_valid(line, n))
			return -EINVAL;
		if (at + n + 2 > PUSH_HEADERS_MAX)
			return -E2BIG;
		if (n > 0)
			at += (size_t)snprintf(headers + at, PUSH_HEADERS_MAX - at, "%.*s\n", (int)n, line);
		line += whole + (line[whole] == '\n');
	}
	return 0;
}

static int read_headers(const char *path, char headers[static PUSH_HEADERS_MAX], char *error, size_t size)
{
	char text[PUSH_HEADERS_MAX];
	int r = read_secret(path, text, sizeof(text));

	headers[0] = '\0';
	if (r == 0)
		r = take_headers(text, headers);
	explicit_bzero(text, sizeof(text));
	if (r == -EINVAL)
		snprintf(error, size,
			 "%.200s must have a header in each line, as in NAME: VALUE, with a value, of "
			 "printable characters of ASCII, the name of letters, digits and hyphens",
			 path);
	else if (r < 0)
		explain_file(r, path, PUSH_HEADERS_MAX - 1, error, size);
	return r;
}

void push_key_read(const struct push_key *key, struct push_question *question, char *error, size_t size)
{
	const char *place = key->file ? key->file : key->variable;
	int r = place ? read_key(key, question->key) : 0;

	*error = '\0';
	if (r < 0)
		explain_key(r, place, error, size);
	if (r == 0 && key->certificate_file)
		r = read_pem(key->certificate_file, question->certificate, error, size);
	if (r == 0 && key->certificate_key_file)
		r = read_pem(key->certificate_key_file, question->certificate_key, error, size);
	if (r == 0 && key->headers_file)
		r = read_headers(key->headers_file, question->headers, error, size);
	question->waits = r < 0;
}
