// SPDX-License-Identifier: Apache-2.0
/*
 * A server's page of metrics as it comes: of the families of model/servers.def the sums of their samples. A
 * line that is not of the format is left out.
 */
#pragma once

#include "exposition/exposition.h"
#include "model/server.h"

struct figure_page {
	enum server_kind kind;
	struct exposition exposition;
	struct server_page sums;
};

void figure_page_init(struct figure_page *page, enum server_kind kind);
void figure_page_done(struct figure_page *page);
/* 0 or -ENOMEM. */
int figure_page_feed(struct figure_page *page, const char *data, size_t n);
/* -ENODATA: there was no figure on it. */
int figure_page_end(struct figure_page *page, struct server_page *ret_page);
