// SPDX-License-Identifier: Apache-2.0
/*
 * The pages of the agent, as the process that listens and the agent both know them: a page's number is its
 * place in routes.def. The variants that clients may choose are decided here, from headers and arguments, so
 * that the agent needs only their numbers.
 */
#pragma once

#include "serve/http.h"
#include "view/view.h"

/*
 * Manners of metrics, of other programs' pages, of the web page, its files and events; of recordings; of
 * timelines.
 */
extern const struct http_manner metrics_manner, dcgm_manner, container_manner, summary_manner, any_manner,
	index_manner, asset_manner, stream_manner, history_manner, moment_manner, record_manner,
	timeline_manner, report_manner;

enum web_page {
#define PAGE(path_, methods_, local_, variant_, handle_, help_) PAGE_##handle_,
#include "web/routes.def"
#undef PAGE
	WEB_PAGES
};

enum web_stacks_format { STACKS_JSON, STACKS_FOLDED, STACKS_PPROF, STACKS_HTML, STACKS_FORMATS };

/*
 * Of /: what this client is sent. INDEX_LIST: that is none that shows HTML. Of a file of the web page: the
 * same without INDEX_LIST.
 */
enum web_index { INDEX_LIST, INDEX_PLAIN, INDEX_GZIP };

/* Of /plain: whether browsers load it again by themselves. */
enum web_plain { PLAIN_ONCE, PLAIN_RELOAD };

/* For http_route.variant. Numbers of variants are below HTTP_VARIANTS. */
/* enum web_index. */
int index_variant(const struct http_request *request, void *userdata);
int asset_variant(const struct http_request *request, void *userdata);
/* enum web_plain. */
int plain_variant(const struct http_request *request, void *userdata);
int metrics_variant(const struct http_request *request, void *userdata);
/* -1: ?names= has an unknown value, see dcgm_refuse(). */
int dcgm_variant(const struct http_request *request, void *userdata);
/* 1 for ?brief=yes, else 0; -1: ?brief= has an unknown value. */
int snapshot_variant(const struct http_request *request, void *userdata);
/* enum web_stacks_format; -1: ?format= has an unknown value. */
int stacks_variant(const struct http_request *request, void *userdata);
/* Bits of enum container_flags; -1: ?absent= or ?compat= has an unknown value. */
int container_variant(const struct http_request *request, void *userdata);
/* -1, always: the answer depends on the time of the request, not only on a snapshot. */
int uncached(const struct http_request *request, void *userdata);

/* What a variant of /metrics/dcgm stands for; @variant at least 0, any value. */
enum exposition dcgm_format(int variant);
enum dcgm_names dcgm_names(int variant);
/* The reply to an unknown value of ?brief=. */
int snapshot_refuse(struct http_reply *reply);
/* The reply to an unknown value of ?format=. */
int stacks_refuse(struct http_reply *reply);
/* The reply to an unknown value of ?names=. */
int dcgm_refuse(struct http_reply *reply);
