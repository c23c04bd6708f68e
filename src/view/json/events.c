// SPDX-License-Identifier: Apache-2.0
#include "model/source.h"
#include "model/xid.h"
#include "view/json/json.h"

static json_t *json_sources(struct json_maker *j, unsigned sources)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < SOURCES; i++)
		if (sources & 1u << i)
			json_push(j, array, json_string(source_rows[i].name));
	return array;
}

static json_t *json_event(struct json_maker *j, const struct xid_event *event)
{
	const struct xid_description *description = xid_describe(event->code);
	bool known = event->entity < j->s->entities_n;
	json_t *object = json_object();

	json_put(j, object, "number", json_integer((json_int_t)event->number));
	json_put(j, object, "time", json_time(event->real_ns));
	json_put(j, object, "type", json_string("xid"));
	json_put(j, object, "gpu",
		 known ? json_integer(j->s->entities[event->entity].id.index) : json_null());
	json_put(j, object, "uuid", known ? json_text(j->s->entities[event->entity].id.uuid) : json_null());
	json_put(j, object, "pci_bus_id", json_text(event->pci_bus_id));
	json_put(j, object, "gi", json_unsigned_or_null(event->gi));
	json_put(j, object, "ci", json_unsigned_or_null(event->ci));
	json_add_xid(j, object, event->code, description);
	json_put(j, object, "sources", json_sources(j, event->sources));
	json_put(j, object, "text", json_text_or_null(event->text));
	return object;
}

void json_add_events(struct json_maker *j, json_t *document)
{
	const struct snapshot *s = j->s;
	uint64_t left_out = s->xid_events_n ? s->xid_events[0].number - 1 : 0;
	json_t *events = json_array();

	for (uint32_t i = 0; i < s->xid_events_n; i++)
		json_push(j, events, json_event(j, &s->xid_events[i]));
	json_put(j, document, "events", events);
	json_put(j, document, "events_left_out", json_integer((json_int_t)left_out));
}
