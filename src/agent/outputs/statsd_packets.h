// SPDX-License-Identifier: Apache-2.0
/*
 * StatsD's datagrams: as many lines in each as fit. Of a counter a line has what was added since it was there
 * last, as when its GPU was lost for a while; it is remembered for STATSD_ABSENT_NS. One that was not there
 * has begun since, where that is known; else its first round only says where it stands, since a driver's
 * counter is older than this agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/strbuf.h"
#include "view/statsd.h"

enum {
	STATSD_UDP_BYTES = 1432, /* of a datagram that no network of 1500 cuts into pieces */
	STATSD_UNIX_BYTES = 8192,
	STATSD_COUNTERS_MAX = 65536,
};

/* What a driver says that it does not support is asked for again every five minutes, as is a lost GPU. */
#define STATSD_ABSENT_NS (3600 * NSEC_PER_SEC)

/* A counter as it was when it was there last. */
struct statsd_counter {
	uint64_t key;
	double value;
	int64_t real_ns; /* of that round */
};

struct statsd_packets {
	void (*send)(const void *data, size_t n, void *userdata);
	void *userdata;
	size_t bytes; /* of a datagram, at most */
	struct strbuf packet, line;
	uint64_t left_out; /* lines longer than a datagram, counters beyond the limit or of one name */

	/* Counters until the round before, and of this one: key to index. */
	struct hashmap known, next;
	struct statsd_counter *known_counters, *next_counters;
	int64_t known_real_ns; /* when that round was; 0: there was none */
};

int statsd_packets_init(struct statsd_packets *packets, size_t bytes,
			void (*send)(const void *data, size_t n, void *userdata), void *userdata);
void statsd_packets_done(struct statsd_packets *packets);

/* A round: values, then its end, which sends what is left. @real_ns: when the values were taken. */
void statsd_packets_add(struct statsd_packets *packets, const struct statsd_value *value);
void statsd_packets_end(struct statsd_packets *packets, int64_t real_ns);
