// SPDX-License-Identifier: Apache-2.0
#include "cmd/own_rights.h"

#include <unistd.h>

#include "base/macro.h"
#include "proc/proc.h"
#include "proc/rights.h"
#include "trace/attach.h"

static json_t *lacks_json(unsigned needs, unsigned needed)
{
	struct rights_lack lacks[RIGHTS_LACKS_MAX];
	char remedy[sizeof(lacks[0].remedy)];
	unsigned n = rights_lacks(needs, lacks);
	struct strbuf text;
	json_t *json;

	strbuf_init(&text, 0);
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(&text, "%s%s: %s", i ? "; " : "", lacks[i].cause, lacks[i].lost);
	rights_remedy(needs, remedy, sizeof(remedy));
	json = json_pack("{s:b, s:b, s:s, s:s}", "known",
			 needed != 0 || rights_lacks(RIGHTS_FOR(MULTI) | RIGHTS_FOR(EVENT), lacks) == 0,
			 "needed", rights_lacks(needed, lacks) > 0, "text", n ? text.data : "", "remedy",
			 remedy);
	strbuf_done(&text);
	return json;
}

static const char *which_processes(void)
{
	if (!proc_sees_all())
		return "namespace";
	return access("/proc/1/stat", R_OK) < 0 ? "hidden" : "all";
}

json_t *own_rights(void)
{
	unsigned needed = attach_needs(false);
	struct strbuf held;
	json_t *json;

	strbuf_init(&held, 0);
	rights_held(&held);
	json = json_pack("{s:o, s:o, s:s, s:s}", "tracing",
			 lacks_json(needed | RIGHTS_FOR(OTHERS) | RIGHTS_FOR(CLOSED), needed), "kernel_log",
			 lacks_json(RIGHTS_FOR(KERNEL_LOG), RIGHTS_FOR(KERNEL_LOG)), "capabilities",
			 held.len ? held.data : "", "processes", which_processes());
	strbuf_done(&held);
	return json;
}
