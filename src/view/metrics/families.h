// SPDX-License-Identifier: Apache-2.0
/* Pages of metrics, of which only some families are wanted. */
#pragma once

#include "base/strbuf.h"

/*
 * Appends those families of a page of Prometheus' text or OpenMetrics whose names are of the list
 * (glob_list_has(); names with _total and _info), and the page's end mark.
 */
void families_of_page(const struct strbuf *page, const char *list, struct strbuf *out);
/* The same of a page of view_metrics_protobuf(). */
void families_of_protobuf(const struct strbuf *page, const char *list, struct strbuf *out);
