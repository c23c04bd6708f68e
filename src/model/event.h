// SPDX-License-Identifier: Apache-2.0
/*
 * Something that happened, once, to be told to others: an XID, a finding that begins or ends, a GPU that is
 * lost. It is all values, so that it may be handed to another process.
 */
#pragma once

#include <stdint.h>

#define EVENT_NO_NUMBER INT64_MIN

enum {
	EVENT_NAME = 40,
	EVENT_BODY = 800,
	EVENT_VALUES = 10,
	EVENT_VALUE_NAME = 64,
};

/* OpenTelemetry's numbers of severity; SEVERITY_CRITICAL is what it calls the critical of syslog. */
enum event_severity {
	SEVERITY_INFO = 9,
	SEVERITY_WARNING = 13,
	SEVERITY_ERROR = 17,
	SEVERITY_CRITICAL = 18,
};

/* A figure that the event rests on. */
struct event_value {
	char name[EVENT_VALUE_NAME]; /* with its unit: "slowest_seconds" */
	double value;
};

/* Texts are UTF-8, and "" where they do not apply. */
struct event {
	char name[EVENT_NAME]; /* what sort of event: "gpusonde.xid" */
	char body[EVENT_BODY]; /* for people */
	uint32_t severity; /* enum event_severity */
	uint32_t values_n;
	int64_t real_ns; /* when it happened; 0: that is not known */
	int64_t observed_real_ns; /* when gpusonde saw it */
	struct event_value values[EVENT_VALUES];
#define EVENT_TEXT(member_, bytes_, attribute_) char member_[bytes_];
#define EVENT_NUMBER(member_, attribute_) int64_t member_;
#include "model/events.def"
};
