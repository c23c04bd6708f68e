// SPDX-License-Identifier: Apache-2.0
#include "push/otlp_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "model/event.h"
#include "push/gzip.h"
#include "push/otlp.h"
#include "push/otlp_resource.h"

static const struct {
	const char *attribute;
	size_t offset;
	bool is_number;
} columns[] = {
#define EVENT_TEXT(member_, bytes_, attribute_) { attribute_, offsetof(struct event, member_), false },
#define EVENT_NUMBER(member_, attribute_) { attribute_, offsetof(struct event, member_), true },
#include "model/events.def"
};

struct otlp_logs {
	char resource[sizeof(((struct push_settings *)NULL)->labels)];
	uint32_t records_max;
};

struct record {
	Otlp__LogRecord log;
	Otlp__AnyValue body;
};

/* The request, and all that hangs on it. */
struct logs_tree {
	struct otlp_attributes attributes;
	struct otlp_resource resource;
	struct record *records;
	Otlp__LogRecord **list;
};

static void logs_tree_done(struct logs_tree *tree)
{
	otlp_attributes_done(&tree->attributes);
	otlp_resource_done(&tree->resource);
	free(tree->records);
	free(tree->list);
}

/* ---- records ---- */

static void add_column(struct otlp_attributes *attributes, const struct event *event, size_t column)
{
	const char *at = (const char *)event + columns[column].offset;
	int64_t number;

	if (!columns[column].is_number) {
		if (*at)
			otlp_add_text(attributes, columns[column].attribute, at);
		return;
	}
	memcpy(&number, at, sizeof(number));
	if (number != EVENT_NO_NUMBER)
		otlp_add_number(attributes, columns[column].attribute, number);
}

static void add_event_attributes(struct otlp_attributes *attributes, const struct event *event,
				 Otlp__LogRecord *log)
{
	size_t first = attributes->n;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		add_column(attributes, event, i);
	for (uint32_t i = 0; i < event->values_n; i++)
		otlp_add_figure(attributes, event->values[i].name, event->values[i].value);
	log->attributes = &attributes->pairs[first];
	log->n_attributes = attributes->n - first;
}

static const char *severity_text(uint32_t severity)
{
	return severity >= SEVERITY_CRITICAL ? "CRITICAL" :
	       severity >= SEVERITY_ERROR    ? "ERROR" :
	       severity >= SEVERITY_WARNING  ? "WARN" :
					       "INFO";
}

static void set_record(struct logs_tree *tree, const struct event *event, uint32_t at)
{
	struct record *record = &tree->records[at];
	Otlp__LogRecord *log = &record->log;

	otlp__log_record__init(log);
	otlp__any_value__init(&record->body);
	record->body.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	record->body.string_value = (char *)event->body;
	log->body = &record->body;
	log->event_name = (char *)event->name;
	log->time_unix_nano = (uint64_t)event->real_ns;
	log->observed_time_unix_nano = (uint64_t)event->observed_real_ns;
	log->severity_number = (Otlp__SeverityNumber)event->severity;
	log->severity_text = (char *)severity_text(event->severity);
	add_event_attributes(&tree->attributes, event, log);
	tree->list[at] = log;
}

/* ---- requests ---- */

static int pack_logs(struct logs_tree *tree, const char *resource, uint32_t n, struct batch *batch)
{
	Otlp__ExportLogsServiceRequest request = OTLP__EXPORT_LOGS_SERVICE_REQUEST__INIT;
	Otlp__ResourceLogs of_resource = OTLP__RESOURCE_LOGS__INIT, *resources[] = { &of_resource };
	Otlp__ScopeLogs of_scope = OTLP__SCOPE_LOGS__INIT, *scopes[] = { &of_scope };
	int r = otlp_resource_init(&tree->resource, resource, &tree->attributes);

	if (r < 0)
		return r;
	of_scope.scope = &tree->resource.scope;
	of_scope.log_records = tree->list;
	of_scope.n_log_records = n;
	of_resource.resource = &tree->resource.resource;
	of_resource.scope_logs = scopes;
	of_resource.n_scope_logs = 1;
	of_resource.schema_url = (char *)OTLP_SCHEMA_URL;
	request.resource_logs = resources;
	request.n_resource_logs = 1;
	return gzip_message(&request.base, batch);
}

static int make_request(const struct otlp_logs *logs, const struct event *events, uint32_t n,
			struct batch *ret_batch)
{
	struct batch batch = { .real_ns = events[0].observed_real_ns, .samples = n };
	struct logs_tree tree = { .records = calloc(n, sizeof(*tree.records)),
				  .list = calloc(n, sizeof(Otlp__LogRecord *)) };
	int r = otlp_attributes_init(&tree.attributes, n * (ARRAY_SIZE(columns) + EVENT_VALUES) +
							       otlp_resource_attributes(logs->resource));

	if (!tree.records || !tree.list)
		r = -ENOMEM;
	for (uint32_t i = 0; i < n && r == 0; i++)
		set_record(&tree, &events[i], i);
	if (r == 0)
		r = pack_logs(&tree, logs->resource, n, &batch);
	logs_tree_done(&tree);
	if (r == 0)
		*ret_batch = batch;
	return r;
}

static void terminate_event(struct event *event)
{
#define TERMINATE(member_)                                 \
	event->member_[sizeof(event->member_) - 1] = '\0'; \
	utf8_sanitize(event->member_)
#define EVENT_TEXT(member_, bytes_, attribute_) TERMINATE(member_);
#include "model/events.def"
	TERMINATE(name);
	TERMINATE(body);
	event->values_n = MIN(event->values_n, (uint32_t)EVENT_VALUES);
	for (uint32_t i = 0; i < event->values_n; i++) {
		TERMINATE(values[i].name);
	}
#undef TERMINATE
}

static int make_logs(void *state, const void *data, size_t bytes, struct batches *batches)
{
	const struct otlp_logs *logs = state;
	uint32_t n = (uint32_t)(bytes / sizeof(struct event));
	_cleanup_free_ struct event *events = NULL;
	int r = 0;

	if (n == 0 || n > PUSH_EVENTS_MAX || n * sizeof(*events) != bytes)
		return -EBADMSG;
	events = malloc(bytes);
	if (!events)
		return -ENOMEM;
	memcpy(events, data, bytes);
	for (uint32_t i = 0; i < n; i++)
		terminate_event(&events[i]);
	for (uint32_t first = 0; first < n && r == 0; first += logs->records_max) {
		struct batch batch = { 0 };

		r = make_request(logs, events + first, MIN(n - first, logs->records_max), &batch);
		if (r == 0)
			r = batches_add(batches, &batch);
	}
	return r;
}

/* ---- the kind ---- */

static void add_logs_path(struct strbuf *url, _unused_ const char *cluster)
{
	strbuf_adds(url, "/v1/logs");
}

static int begin_logs(const struct push_settings *settings, void **ret_state)
{
	struct otlp_logs *logs = calloc(1, sizeof(*logs));

	if (!logs)
		return -ENOMEM;
	memcpy(logs->resource, settings->labels, sizeof(logs->resource));
	logs->records_max = MAX(settings->samples_max, 1u);
	*ret_state = logs;
	return 0;
}

const struct push_kind otlp_logs_kind = {
	.name = "otlp_logs",
	.section = "otlp",
	.url = "logs_endpoint",
	.add_path = add_logs_path,
	.key_header = "Authorization",
	.headers = otlp_headers,
	.keeps_first = true,
	.repeats_answers = true,
	.begin = begin_logs,
	.end = free,
	.make = make_logs,
	.refused = otlp_refused,
};
