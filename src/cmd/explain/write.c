// SPDX-License-Identifier: Apache-2.0
/* Sentences: collected as JSON, written as paragraphs. */
#include "cmd/explain/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "cmd/top/columns.h"
#include "view/table/table.h"

static json_t *format_text(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static json_t *format_text(const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		return NULL;
	utf8_sanitize(text);
	return json_string(text);
}

json_t *explain_begin(struct explain *explain, enum about kind, const char *fmt, ...)
{
	va_list ap;
	json_t *subject;

	va_start(ap, fmt);
	subject = json_pack("{s:s, s:o, s:[]}", "kind", about_names[kind], "title", format_text(fmt, ap),
			    "sentences");
	va_end(ap);
	if (json_array_append_new(explain->subjects, subject) == 0)
		return subject;
	explain->failed = true;
	return NULL;
}

void explain_say(struct explain *explain, json_t *subject, enum topic topic, json_t *figures,
		 const char *remedy, const char *fmt, ...)
{
	static const char *const names[] = {
#define TOPIC(id_, name_) [TOPIC_##id_] = name_,
		TOPICS(TOPIC)
#undef TOPIC
	};
	va_list ap;
	json_t *sentence;

	va_start(ap, fmt);
	sentence = json_pack("{s:s, s:o, s:o, s:s?}", "topic", names[topic], "text", format_text(fmt, ap),
			     "figures", figures ? figures : json_object(), "remedy", remedy);
	va_end(ap);
	if (json_array_append_new(json_object_get(subject, "sentences"), sentence) < 0)
		explain->failed = true;
}

static void write_remedies(const json_t *sentences, const struct table_options *options, struct strbuf *out)
{
	const json_t *sentence;
	struct strbuf line;
	size_t i;

	strbuf_init(&line, 0);
	json_array_foreach(sentences, i, sentence) {
		if (!*text_member(sentence, "remedy"))
			continue;
		strbuf_reset(&line);
		strbuf_addf(&line, "  - %s", text_member(sentence, "remedy"));
		table_line(options, out, COLOUR_WARN, line.data);
	}
	strbuf_done(&line);
}

int explain_text(const json_t *subjects, const struct table_options *options, struct strbuf *out)
{
	const json_t *subject, *sentence;
	struct strbuf paragraph;
	size_t i, k;

	strbuf_init(&paragraph, 0);
	json_array_foreach(subjects, i, subject) {
		const json_t *sentences = json_object_get(subject, "sentences");

		strbuf_reset(&paragraph);
		json_array_foreach(sentences, k, sentence)
			strbuf_addf(&paragraph, "%s%s.", k > 0 ? " " : "", text_member(sentence, "text"));
		if (i > 0)
			strbuf_addc(out, '\n');
		table_line(options, out, COLOUR_HEAD, text_member(subject, "title"));
		if (paragraph.len > 0)
			table_line(options, out, COLOUR_NONE, paragraph.data);
		write_remedies(sentences, options, out);
	}
	out->failed |= paragraph.failed;
	strbuf_done(&paragraph);
	return out->failed ? -ENOMEM : 0;
}
