// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers of Perfetto's trace format, of its trace_packet.proto, track_event.proto, track_descriptor.proto
 * and interned_data.proto; test/timeline/perfetto.proto has those that are written. Others write more of it,
 * which is read as well.
 */
#pragma once

enum {
	TRACE_PACKET = 1,
	/* TracePacket */
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_COMPRESSED = 50,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	/* TracePacketDefaults */
	DEFAULTS_EVENT = 11, /* TrackEventDefaults */
	DEFAULTS_CLOCK = 58,
	/* TrackEventDefaults */
	DEFAULT_TRACK = 11,
	/* ClockSnapshot and its Clock */
	SNAPSHOT_CLOCK = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	CLOCK_INCREMENTAL = 3,
	CLOCK_MULTIPLIER = 4,
	/* TrackDescriptor, ProcessDescriptor, ThreadDescriptor, CounterDescriptor */
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_STATIC_NAME = 10,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT = 3,
	/* InternedData, and its entries */
	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_KEYS = 3,
	INTERNED_FUNCTIONS = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_SOURCES = 18,
	INTERNED_VALUES = 29,
	ENTRY_IID = 1,
	ENTRY_NAME = 2,
	/* Frame, Callstack of profile_common.proto; its InternedString has the numbers of entries */
	FRAME_FUNCTION = 2,
	FRAME_SOURCE = 5,
	FRAME_LINE = 6,
	FRAME_KIND = 7,
	CALLSTACK_FRAME = 2,
	/* TrackEvent, DebugAnnotation */
	EVENT_CATEGORY_IID = 3,
	EVENT_ARG = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_INTEGER = 30,
	EVENT_DOUBLE = 44,
	EVENT_FLOW = 47,
	EVENT_CALLSTACK_IID = 56,
	ARG_KEY_IID = 1,
	ARG_BOOL = 2,
	ARG_UNSIGNED = 3,
	ARG_SIGNED = 4,
	ARG_TEXT = 6,
	ARG_POINTER = 7,
	ARG_KEY = 10,
	ARG_TEXT_IID = 17,
};

enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
/* The last two are of a sequence: a time is the difference to the clock's previous one. */
enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_BOOTTIME_ID = 6, CLOCK_BEGINS = 64, CLOCK_ENDS };
enum { KIND_NATIVE = 1, KIND_INTERPRETED = 3 }; /* of frames */
enum { UNIT_COUNT = 2, UNIT_BYTES = 3 };
