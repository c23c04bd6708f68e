// SPDX-License-Identifier: Apache-2.0
#include "activity/incarnations.h"

/* That of an event about a process; 0: it is about none, or does not say. */
static uint64_t said_by(const struct trace_header *event, uint32_t size)
{
	bool is_process = event->type == TRACE_EVENT_PROCESS || event->type == TRACE_EVENT_EXEC ||
			  event->type == TRACE_EVENT_EXIT;

	return is_process && size >= sizeof(struct trace_process) ?
		       ((const struct trace_process *)event)->incarnation :
		       0;
}

void incarnations_event(struct incarnations *incarnations, const struct trace_header *event, uint32_t size)
{
	uint32_t i = event->tgid % INCARNATIONS;

	if (event->type == TRACE_EVENT_PROCESS) {
		incarnations->newest[i].tgid = event->tgid;
		incarnations->newest[i].incarnation = said_by(event, size);
	} else if ((event->type == TRACE_EVENT_EXEC || event->type == TRACE_EVENT_EXIT) &&
		   incarnations->newest[i].tgid == event->tgid) {
		incarnations->newest[i].incarnation = 0;
	}
}

uint64_t incarnations_of(const struct incarnations *incarnations, uint32_t tgid)
{
	uint32_t i = tgid % INCARNATIONS;

	return incarnations->newest[i].tgid == tgid ? incarnations->newest[i].incarnation : 0;
}

bool incarnation_ends(uint64_t *incarnation, uint64_t first_ns, const struct trace_header *event,
		      uint32_t size)
{
	uint64_t said = said_by(event, size);

	if (event->type == TRACE_EVENT_EXEC || event->type == TRACE_EVENT_EXIT)
		return incarnation_is(*incarnation, said);
	if (event->type != TRACE_EVENT_PROCESS)
		return false;
	if (*incarnation == 0 && first_ns >= said)
		*incarnation = said;
	return *incarnation != said;
}

bool incarnation_is(uint64_t known, uint64_t said)
{
	return known == said || known == 0 || said == 0;
}
