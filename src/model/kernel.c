// SPDX-License-Identifier: Apache-2.0
#include "model/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct kernel_figure_row kernel_figures[KERNEL_FIGURES] = {
#define FIGURE(id_, json_, heading_, help_) [KERNEL_##id_] = { json_, heading_, help_ },
#include "model/kernel.def"
#undef FIGURE
};

void kernel_arch_text(struct kernel_arch arch, char buf[static KERNEL_ARCH_TEXT])
{
	if (arch.sm == 0)
		buf[0] = '\0';
	else
		snprintf(buf, KERNEL_ARCH_TEXT, "sm_%u%.1s", arch.sm, arch.variant ? &arch.variant : "");
}

int kernel_arch_parse(const char *text, struct kernel_arch *ret_arch)
{
	static const char *const prefixes[] = { "sm_", "compute_" };
	unsigned sm = 0, digits = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
			text += strlen(prefixes[i]);
			break;
		}
	}
	for (; *text >= '0' && *text <= '9' && digits < 4; text++, digits++)
		sm = sm * 10 + (unsigned)(*text - '0');
	if (digits < 2 || sm == 0 || (*text && (text[1] || !strchr("af", *text))))
		return -EINVAL;
	*ret_arch = (struct kernel_arch){ .sm = (uint16_t)sm, .variant = *text };
	return 0;
}

const char *kernel_source_name(enum kernel_source source)
{
	static const char *const names[KERNEL_SOURCES] = { "handle", "registered", "symbol", "memory",
							   "unresolved" };

	return names[source];
}

/* Copies the text to *at, behind the struct kernel, and advances *at. */
static const char *place(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *here = *at;

	memcpy(here, text, n);
	*at += n;
	return here;
}

int kernel_new(const struct kernel *from, struct kernel **ret_kernel)
{
	size_t texts = strlen(from->symbol) + strlen(from->file) + 2;
	struct kernel *kernel;
	char *at;

	/* Equal strings are stored once. */
	if (from->name != from->symbol)
		texts += strlen(from->name) + 1;
	if (from->brief != from->name)
		texts += strlen(from->brief) + 1;
	kernel = malloc(sizeof(*kernel) + texts);

	if (!kernel)
		return -ENOMEM;
	*kernel = *from;
	atomic_init(&kernel->refs, 1);
	at = (char *)(kernel + 1);
	kernel->symbol = place(&at, from->symbol);
	kernel->name = from->name == from->symbol ? kernel->symbol : place(&at, from->name);
	kernel->brief = from->brief == from->name ? kernel->name : place(&at, from->brief);
	kernel->file = place(&at, from->file);
	*ret_kernel = kernel;
	return 0;
}

struct kernel *kernel_ref(struct kernel *kernel)
{
	if (kernel)
		atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
	return kernel;
}

void kernel_unref(struct kernel *kernel)
{
	/* As for snapshots: acquire-release, so that the freeing thread sees all accesses by others. */
	if (kernel && atomic_fetch_sub_explicit(&kernel->refs, 1, memory_order_acq_rel) == 1)
		free(kernel);
}
