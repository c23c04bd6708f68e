// SPDX-License-Identifier: Apache-2.0
/*
 * How /metrics/dcgm is written: the options of the section exporter, and the file of counters that they name.
 */
#pragma once

#include "config/options.h"
#include "view/dcgm/fields.h"

/*
 * Reads the file, if one is named. -EINVAL: it cannot be used, see @errors; what is only left out is in
 * @warnings; -ENOMEM. The fields belong to the caller: dcgm_style_done().
 */
int dcgm_style_init(const struct options *options, struct strbuf *errors, struct strbuf *warnings,
		    struct dcgm_style *ret_style);
void dcgm_style_done(struct dcgm_style *style);
