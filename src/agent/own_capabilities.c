// SPDX-License-Identifier: Apache-2.0
#include "agent/own_capabilities.h"

#include <unistd.h>

#include "base/macro.h"
#include "proc/proc.h"
#include "proc/capabilities.h"
#include "trace/attach.h"

static json_t *lacks_json(unsigned needs, unsigned needed)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	char remedy[sizeof(lacks[0].remedy)];
	unsigned n = capability_lacks(needs, lacks);
	struct strbuf text;
	json_t *json;

	strbuf_init(&text, 0);
	for (unsigned i = 0; i < n; i++)
		strbuf_addf(&text, "%s%s: %s", i ? "; " : "", lacks[i].cause, lacks[i].lost);
	capability_remedy(needs, remedy, sizeof(remedy));
	json = json_pack(
		"{s:b, s:b, s:s, s:s}", "known",
		needed != 0 || capability_lacks(CAPABILITY_FOR(MULTI) | CAPABILITY_FOR(EVENT), lacks) == 0,
		"needed", capability_lacks(needed, lacks) > 0, "text", n ? text.data : "", "remedy", remedy);
	strbuf_done(&text);
	return json;
}

static const char *which_processes(void)
{
	if (!proc_sees_all())
		return "namespace";
	return access("/proc/1/stat", R_OK) < 0 ? "hidden" : "all";
}

json_t *own_capabilities(void)
{
	unsigned needed = attach_needs(false);
	struct strbuf held;
	json_t *json;

	strbuf_init(&held, 0);
	capability_held(&held);
	json = json_pack("{s:o, s:o, s:s, s:s}", "tracing",
			 lacks_json(needed | CAPABILITY_FOR(OTHERS) | CAPABILITY_FOR(CLOSED), needed),
			 "kernel_log", lacks_json(CAPABILITY_FOR(KERNEL_LOG), CAPABILITY_FOR(KERNEL_LOG)),
			 "capabilities", held.len ? held.data : "", "processes", which_processes());
	strbuf_done(&held);
	return json;
}
