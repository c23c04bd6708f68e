// SPDX-License-Identifier: Apache-2.0
#include "analysis/stream.h"

#include <math.h>

struct stream stream_begin(uint64_t window_ns)
{
	struct stream s = {
		.now_ns = 1000 * (uint64_t)NSEC_PER_SEC, .pid = 100, .tid = 100, .noise = 88172645463325252
	};

	assert_int_equal(analysis_new(&(struct analysis_options){ .window_ns = window_ns }, &s.analysis), 0);
	s.node = stream_text(&s, "here");
	s.device = stream_text(&s, "GPU 0");
	return s;
}

void stream_end(struct stream *s)
{
	analysis_free(s->analysis);
}

uint32_t stream_text(struct stream *s, const char *text)
{
	uint32_t number;

	assert_int_equal(analysis_text(s->analysis, text, &number), 0);
	return number;
}

/* Marsaglia's xorshift64. */
double stream_random(struct stream *s)
{
	s->noise ^= s->noise << 13;
	s->noise ^= s->noise >> 7;
	s->noise ^= s->noise << 17;
	return (double)(s->noise >> 11) * 0x1p-53;
}

double stream_normal(struct stream *s)
{
	double u = 1 - stream_random(s), v = stream_random(s);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

void stream_put(struct stream *s, struct analysis_event event, uint64_t begin_ns, uint64_t end_ns)
{
	event.node = s->node;
	event.begin_ns = begin_ns;
	event.end_ns = end_ns;
	assert_int_equal(analysis_add(s->analysis, &event), 0);
}

void stream_add(struct stream *s, struct analysis_event event, uint64_t ns)
{
	event.pid = s->pid;
	event.tid = s->tid;
	event.device = s->device;
	s->now_ns += ns;
	stream_put(s, event, s->now_ns - ns, s->now_ns);
}

void stream_counter(struct stream *s, enum analysis_counter counter, double value)
{
	stream_put(s,
		   (struct analysis_event){ .kind = ANALYSIS_COUNTER,
					    .counter = (uint8_t)counter,
					    .device = s->device,
					    .value = value },
		   s->now_ns, s->now_ns);
}

const struct analysis_finding *stream_finding(const struct stream *s, enum analysis_rule rule)
{
	uint32_t n;
	const struct analysis_finding *findings = analysis_findings(s->analysis, &n);

	while (n > 0 && findings[n - 1].rule != rule)
		n--;
	return n > 0 ? &findings[n - 1] : NULL;
}

uint32_t stream_findings(const struct stream *s, enum analysis_rule rule)
{
	uint32_t n, of_rule = 0;
	const struct analysis_finding *findings = analysis_findings(s->analysis, &n);

	for (uint32_t i = 0; i < n; i++)
		of_rule += findings[i].rule == rule;
	return of_rule;
}

double finding_get(const struct analysis_finding *finding, const char *name)
{
	for (uint32_t i = 0; i < finding->values_n; i++)
		if (STRV_EQ(finding->values[i].name, name))
			return finding->values[i].value;
	return NAN;
}
