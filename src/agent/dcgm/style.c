// SPDX-License-Identifier: Apache-2.0
#include "agent/dcgm/style.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { COLLECTORS_BYTES_MAX = 256 << 10 }; /* the exporter's own has 8 KiB */

static int read_collectors(const char *path, struct strbuf *errors, struct strbuf *warnings,
			   struct dcgm_fields **ret_fields)
{
	_cleanup_(freep) char *text = malloc(COLLECTORS_BYTES_MAX);
	size_t n = 0;
	int r;

	if (!text)
		return -ENOMEM;
	r = read_file(path, text, COLLECTORS_BYTES_MAX, &n);
	if (r == 0)
		return dcgm_fields_parse(path, text, n, errors, warnings, ret_fields);
	strbuf_addf(errors, "exporter.collectors: %s: %s\n", path,
		    r == -E2BIG ? "it has more than 256 KiB: it is no file of counters" : strerror(-r));
	return -EINVAL;
}

int dcgm_style_init(const struct options *options, struct strbuf *errors, struct strbuf *warnings,
		    struct dcgm_style *ret_style)
{
	const char *path = options_text(options, OPT_exporter_collectors);
	struct dcgm_fields *fields = NULL;
	int r = path ? read_collectors(path, errors, warnings, &fields) : 0;

	if (r < 0)
		return r;
	*ret_style = (struct dcgm_style){
		.fields = fields,
		.xid_window_ns = options_number(options, OPT_exporter_xid_window),
		.no_hostname = options_bool(options, OPT_exporter_no_hostname),
		.model_dashes = options_bool(options, OPT_exporter_model_dashes),
	};
	return 0;
}

void dcgm_style_done(struct dcgm_style *style)
{
	dcgm_fields_free((struct dcgm_fields *)style->fields);
	style->fields = NULL;
}
