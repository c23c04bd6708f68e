// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/statsd_packets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/number.h"

int statsd_packets_init(struct statsd_packets *packets, size_t bytes,
			void (*send)(const void *data, size_t n, void *userdata), void *userdata)
{
	*packets = (struct statsd_packets){ .send = send, .userdata = userdata, .bytes = bytes };
	strbuf_init(&packets->packet, 0);
	strbuf_init(&packets->line, 0);
	packets->known_counters = calloc(STATSD_COUNTERS_MAX, sizeof(*packets->known_counters));
	packets->next_counters = calloc(STATSD_COUNTERS_MAX, sizeof(*packets->next_counters));
	if (packets->known_counters && packets->next_counters)
		return 0;
	statsd_packets_done(packets);
	return -ENOMEM;
}

void statsd_packets_done(struct statsd_packets *packets)
{
	strbuf_done(&packets->packet);
	strbuf_done(&packets->line);
	hashmap_done(&packets->known);
	hashmap_done(&packets->next);
	free(packets->known_counters);
	free(packets->next_counters);
	packets->known_counters = packets->next_counters = NULL;
}

/* ---- counters ---- */

/* A GPU's number changes when another is lost; its UUID does not. */
static uint64_t counter_key(struct statsd_packets *packets, const struct statsd_value *value)
{
	const char *number = strstr(value->tags, "gpu:"), *end = number ? strchr(number, ',') : NULL;
	bool has_number = end && (number == value->tags || number[-1] == ',') && strstr(end, ",uuid:");

	strbuf_reset(&packets->line);
	strbuf_adds(&packets->line, value->name);
	strbuf_addc(&packets->line, '|');
	strbuf_add(&packets->line, value->tags, has_number ? (size_t)(number - value->tags) : 0);
	strbuf_adds(&packets->line, has_number ? end : value->tags);
	return hash_bytes_secret(packets->line.data, packets->line.len);
}

static double increase_of(const struct statsd_packets *packets, uint64_t key,
			  const struct statsd_value *value)
{
	uint32_t at;

	if (hashmap_get(&packets->known, key, &at)) {
		const struct statsd_counter *was = &packets->known_counters[at];
		bool began_anew = value->value < was->value || value->created_real_ns > was->real_ns;

		return began_anew ? value->value : value->value - was->value;
	}
	if (packets->known_real_ns && value->created_real_ns > packets->known_real_ns)
		return value->value;
	return 0;
}

/* False: there is no room to remember it, or another of this round has its name and tags. */
static bool take_increase(struct statsd_packets *packets, const struct statsd_value *value,
			  double *ret_increase)
{
	uint64_t key = counter_key(packets, value);
	uint32_t at = packets->next.count, there;

	if (at == STATSD_COUNTERS_MAX || hashmap_get(&packets->next, key, &there) ||
	    hashmap_put(&packets->next, key, at) < 0)
		return false;
	packets->next_counters[at] = (struct statsd_counter){ .key = key, .value = value->value };
	*ret_increase = increase_of(packets, key, value);
	return true;
}

/* ---- datagrams ---- */

static void send_packet(struct statsd_packets *packets)
{
	if (packets->packet.len > 0 && !packets->packet.failed)
		packets->send(packets->packet.data, packets->packet.len, packets->userdata);
	strbuf_reset(&packets->packet);
}

static void add_statsd_line(struct statsd_packets *packets, const struct statsd_value *value, double number)
{
	struct strbuf *line = &packets->line;

	strbuf_reset(line);
	strbuf_adds(line, value->name);
	strbuf_addc(line, ':');
	number_add(line, number);
	strbuf_adds(line, value->is_counter ? "|c" : "|g");
	if (*value->tags) {
		strbuf_adds(line, "|#");
		strbuf_adds(line, value->tags);
	}
	strbuf_addc(line, '\n');
	if (line->failed || line->len > packets->bytes) {
		packets->left_out++;
		return;
	}
	if (packets->packet.len + line->len > packets->bytes)
		send_packet(packets);
	strbuf_add(&packets->packet, line->data, line->len);
}

void statsd_packets_add(struct statsd_packets *packets, const struct statsd_value *value)
{
	double number = value->value;

	if (!isfinite(number))
		return;
	if (value->is_counter && !take_increase(packets, value, &number))
		packets->left_out++;
	else if (!value->is_counter || number > 0)
		add_statsd_line(packets, value, number);
}

/* As far as there is room. */
static void remember_absent(struct statsd_packets *packets, int64_t real_ns)
{
	for (uint32_t i = 0; i < packets->known.count; i++) {
		const struct statsd_counter *was = &packets->known_counters[i];
		uint32_t at = packets->next.count, there;

		if (at == STATSD_COUNTERS_MAX)
			return;
		if (real_ns - was->real_ns > STATSD_ABSENT_NS ||
		    hashmap_get(&packets->next, was->key, &there))
			continue;
		if (hashmap_put(&packets->next, was->key, at) < 0)
			return;
		packets->next_counters[at] = *was;
	}
}

void statsd_packets_end(struct statsd_packets *packets, int64_t real_ns)
{
	struct hashmap map = packets->known;
	struct statsd_counter *counters = packets->known_counters;

	send_packet(packets);
	for (uint32_t i = 0; i < packets->next.count; i++)
		packets->next_counters[i].real_ns = real_ns;
	remember_absent(packets, real_ns);
	packets->known = packets->next;
	packets->known_counters = packets->next_counters;
	packets->next = map;
	packets->next_counters = counters;
	hashmap_clear(&packets->next);
	packets->known_real_ns = real_ns;
}
