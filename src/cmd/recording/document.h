// SPDX-License-Identifier: Apache-2.0
/* A report as headings, sentences and tables of texts, and what makes text, Markdown or HTML of it. */
#pragma once

#include "base/strbuf.h"

enum document_format { DOCUMENT_TEXT, DOCUMENT_MARKDOWN, DOCUMENT_HTML, DOCUMENT_FORMATS };

enum { DOCUMENT_COLUMNS = 16 };

struct document {
	enum document_format format;
	struct strbuf *out;
	/* the table that is being made */
	const char *headings[DOCUMENT_COLUMNS]; /* one that begins with '<' is of texts, to the left */
	unsigned columns, rows;
	struct strbuf cells; /* each with its NUL */
};

void document_begin(struct document *document, enum document_format format, const char *title,
		    struct strbuf *out);
void document_heading(struct document *document, const char *text);
void document_say(struct document *document, const char *fmt, ...) _printf_(2, 3);
void document_table(struct document *document, unsigned columns, const char *const *headings);
void document_cell(struct document *document, const char *fmt, ...) _printf_(2, 3);
/* Writes the table; without rows @nothing instead. */
void document_table_end(struct document *document, const char *nothing);
/* Of HTML alone: what is drawn already. */
void document_raw(struct document *document, const char *html);
void document_end(struct document *document);
/* For HTML: no character that it knows, none that a terminal obeys. */
void document_escape(struct strbuf *out, const char *text);
