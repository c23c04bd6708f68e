// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/host_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/macro.h"
#include "hosts/protocol.h"

enum { FILE_BYTES = 256 << 10 };
#define PLAIN "http://"
#define PORT ":9470"

void host_list_done(struct host_list *list)
{
	free(list->list);
	*list = (struct host_list){ 0 };
}

static bool has_scheme(const char *text)
{
	return strncmp(text, PLAIN, strlen(PLAIN)) == 0 || strncmp(text, "https://", strlen("https://")) == 0;
}

/* Only what names and addresses have; a path, too, behind a scheme. Never a user or a question. */
static bool is_host(const char *text)
{
	const char *name = has_scheme(text) ? strchr(text, ':') + 3 : text;
	const char *more = has_scheme(text) ? "-._:[]%/~" : "-._:[]%";

	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(more, *c))
			return false;
	return isalnum((unsigned char)*name) || *name == '[' || *name == ':';
}

/* "::1" is an address alone, "[::1]:9470" one with a port. */
static void make_url(const char *text, char url[static HOST_URL_TEXT])
{
	const char *colon = strchr(text, ':'), *bracket = strrchr(text, ']');
	size_t n;

	if (has_scheme(text))
		snprintf(url, HOST_URL_TEXT, "%s", text);
	else if (text[0] != '[' && colon && strchr(colon + 1, ':'))
		snprintf(url, HOST_URL_TEXT, PLAIN "[%s]" PORT, text);
	else if (bracket ? bracket[1] == ':' : colon != NULL)
		snprintf(url, HOST_URL_TEXT, PLAIN "%s", text);
	else
		snprintf(url, HOST_URL_TEXT, PLAIN "%s" PORT, text);
	for (n = strlen(url); n > 0 && url[n - 1] == '/';)
		url[--n] = '\0';
}

static void make_name(const char *url, char name[static HOST_NAME_TEXT])
{
	const char *begin = strncmp(url, PLAIN, strlen(PLAIN)) == 0 ? url + strlen(PLAIN) : url;
	size_t n = strlen(begin);

	if (n > strlen(PORT) && STRV_EQ(begin + n - strlen(PORT), PORT))
		n -= strlen(PORT);
	snprintf(name, HOST_NAME_TEXT, "%.*s", (int)n, begin);
}

static int refuse_host(char why[static HOST_WHY_TEXT], const char *text, const char *reason)
{
	snprintf(why, HOST_WHY_TEXT, "\"%.80s\" %s", text, reason);
	return -EINVAL;
}

int host_list_add(struct host_list *list, const char *text, char ret_why[static HOST_WHY_TEXT])
{
	struct named_host host = { 0 }, *longer;

	if (!is_host(text) || strlen(text) > HOST_URL_TEXT - strlen(PLAIN PORT "[]") - 1)
		return refuse_host(ret_why, text,
				   "is no host: name, name:port, http://name:port or https://name/path");
	make_url(text, host.url);
	make_name(host.url, host.name);
	for (uint32_t i = 0; i < list->n; i++)
		if (STRV_EQ(list->list[i].url, host.url))
			return 0;
	if (list->n == HOSTS_MAX)
		return refuse_host(ret_why, text, "is one too many: 256 hosts fit");
	longer = realloc(list->list, (list->n + 1) * sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	list->list = longer;
	longer[list->n++] = host;
	return 0;
}

int host_list_read(struct host_list *list, const char *path, char ret_why[static HOST_WHY_TEXT])
{
	_cleanup_free_ char *text = malloc(FILE_BYTES);
	char *line, *rest = text;
	int r = text ? read_file(path, text, FILE_BYTES, NULL) : -ENOMEM;

	if (r < 0)
		snprintf(ret_why, HOST_WHY_TEXT, "%.120s cannot be read: %s", path, strerror(-r));
	while (r == 0 && (line = strsep(&rest, "\n"))) {
		line[strcspn(line, "#")] = '\0';
		line += strspn(line, " \t\r");
		line[strcspn(line, " \t\r")] = '\0';
		if (*line)
			r = host_list_add(list, line, ret_why);
	}
	return r;
}
