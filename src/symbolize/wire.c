// SPDX-License-Identifier: Apache-2.0
#include "symbolize/wire.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "helper/helper.h"

enum { SM_MAX = 9999 };

static uint32_t text_bytes(const char *text)
{
	return text ? (uint32_t)strlen(text) + 1 : 0;
}

/* With its NUL; nothing for NULL. */
static void put_text_of(struct strbuf *out, const char *text)
{
	if (text)
		strbuf_add(out, text, strlen(text) + 1);
}

static int finish_message(const struct strbuf *out)
{
	return out->failed ? -ENOMEM : out->len > HELPER_MESSAGE_MAX ? -EMSGSIZE : 0;
}

int wire_put_question(struct strbuf *out, const struct symbolizer_question *question, uint64_t id)
{
	const struct wire_request request = {
		.kind = WIRE_QUESTION,
		.pid = question->process.pid,
		.id = id,
		.start_ticks = question->process.start_ticks,
		.incarnation = question->incarnation,
		.seq = question->seq,
		.function = question->function,
		.image = question->image,
		.symbol_n = text_bytes(question->symbol),
		.path_n = text_bytes(question->path),
		.sm = question->sm,
		.symbol_last = question->symbol_last,
	};

	strbuf_add(out, (const char *)&request, sizeof(request));
	put_text_of(out, question->symbol);
	put_text_of(out, question->path);
	return finish_message(out);
}

int wire_put_request(struct strbuf *out, const struct wire_request *request, const char *path)
{
	struct wire_request all = *request;

	all.path_n = text_bytes(path);
	strbuf_add(out, (const char *)&all, sizeof(all));
	put_text_of(out, path);
	return finish_message(out);
}

/* Takes a text of @n bytes at *at, if it ends with its only NUL. */
static int take_text(const char **at, const char *end, uint32_t n, const char **ret_text)
{
	*ret_text = NULL;
	if (n == 0)
		return 0;
	if (n > (size_t)(end - *at) || strnlen(*at, n) != n - 1)
		return -EBADMSG;
	*ret_text = *at;
	*at += n;
	return 0;
}

int wire_take_question(const void *message, size_t n, struct symbolizer_question *ret_question)
{
	const struct wire_request *request = message;
	const char *at = (const char *)(request + 1), *end = (const char *)message + n;
	struct symbolizer_question question;
	int r;

	if (n < sizeof(*request))
		return -EBADMSG;
	question = (struct symbolizer_question){
		.process = { .pid = request->pid, .start_ticks = request->start_ticks },
		.incarnation = request->incarnation,
		.function = request->function,
		.sm = request->sm,
		.symbol_last = request->symbol_last,
		.image = request->image,
		.seq = request->seq,
		.id = request->id,
	};
	r = take_text(&at, end, request->symbol_n, &question.symbol);
	if (r == 0)
		r = take_text(&at, end, request->path_n, &question.path);
	if (r < 0 || at != end)
		return -EBADMSG;
	*ret_question = question;
	return 0;
}

int wire_put_kernel(struct strbuf *out, const struct kernel *kernel, uint64_t id)
{
	struct wire_kernel fixed = {
		.kind = WIRE_KERNEL,
		.id = id,
		.offset = kernel->offset,
		.symbol_n = text_bytes(kernel->symbol),
		.name_n = text_bytes(kernel->name),
		.brief_n = text_bytes(kernel->brief),
		.file_n = text_bytes(kernel->file),
		.source = kernel->source,
		.sm = kernel->arch.sm,
		.variant = (uint8_t)kernel->arch.variant,
		.jit = kernel->jit,
	};

	memcpy(fixed.figures, kernel->figures, sizeof(fixed.figures));
	strbuf_add(out, (const char *)&fixed, sizeof(fixed));
	put_text_of(out, kernel->symbol);
	put_text_of(out, kernel->name);
	put_text_of(out, kernel->brief);
	put_text_of(out, kernel->file);
	return finish_message(out);
}

static bool are_plausible(const struct wire_kernel *kernel)
{
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		if (kernel->figures[i] < -1)
			return false;
	return kernel->source < KERNEL_SOURCES && kernel->sm <= SM_MAX && kernel->jit <= 1 &&
	       (kernel->variant == 0 || kernel->variant == 'a' || kernel->variant == 'f');
}

static int take_clean(const char **at, const char *end, uint32_t n, const char **ret_text)
{
	int r = n == 0 ? -EBADMSG : take_text(at, end, n, ret_text);

	if (r < 0)
		return r;
	for (char *c = (char *)*ret_text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	utf8_sanitize((char *)*ret_text);
	return 0;
}

int wire_take_kernel(void *message, size_t n, uint64_t *ret_id, struct kernel *ret_kernel)
{
	const struct wire_kernel *fixed = message;
	const char *at = (const char *)(fixed + 1), *end = (const char *)message + n;
	struct kernel kernel;
	int r;

	if (n < sizeof(*fixed) || !are_plausible(fixed))
		return -EBADMSG;
	kernel = (struct kernel){
		.source = (enum kernel_source)fixed->source,
		.offset = fixed->offset,
		.arch = { .sm = fixed->sm, .variant = (char)fixed->variant },
		.jit = fixed->jit,
	};
	memcpy(kernel.figures, fixed->figures, sizeof(kernel.figures));
	r = take_clean(&at, end, fixed->symbol_n, &kernel.symbol);
	if (r == 0)
		r = take_clean(&at, end, fixed->name_n, &kernel.name);
	if (r == 0)
		r = take_clean(&at, end, fixed->brief_n, &kernel.brief);
	if (r == 0)
		r = take_clean(&at, end, fixed->file_n, &kernel.file);
	if (r < 0 || at != end)
		return -EBADMSG;
	*ret_id = fixed->id;
	*ret_kernel = kernel;
	return 0;
}
