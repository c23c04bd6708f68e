// SPDX-License-Identifier: Apache-2.0
#include "trace/attach_private.h"

#include <errno.h>

#include <bpf/bpf.h>

#if defined(__aarch64__)
enum { BREAKPOINT = 4 };
#else
enum { BREAKPOINT = 1 };
#endif
enum { PAGE = 4096, WINDOW = 16 };

/*
 * The signature as the kernel side computes it. Code is mapped by file pages, so its offset in the page is
 * known.
 */
static int signature_of(const struct attach_site *site, uint32_t salt, struct trace_signature *ret_key)
{
	struct trace_signature key = { .page_offset = (uint32_t)(site->offset & (PAGE - 1)), .salt = salt };
	size_t n = MIN((size_t)WINDOW, (size_t)(PAGE - key.page_offset));

	if (site->code_n < n)
		n = site->code_n;
	if (n < BREAKPOINT)
		return -EINVAL;
	memcpy(key.code, site->code + BREAKPOINT, n - BREAKPOINT);
	*ret_key = key;
	return 0;
}

static struct attach_signature *signature_find(const struct attach_backend *backend,
					       const struct trace_signature *key)
{
	for (size_t i = 0; i < backend->signatures_n; i++)
		if (memcmp(&backend->signatures[i].key, key, sizeof(*key)) == 0)
			return &backend->signatures[i];
	return NULL;
}

static int insert(struct attach_backend *backend, const struct trace_signature *key, uint64_t value)
{
	struct attach_signature *grown;

	if (backend->signatures_n >= ATTACH_SITES_MAX)
		return -ENOSPC;
	grown = reallocarray(backend->signatures, backend->signatures_n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	backend->signatures = grown;
	if (bpf_map_update_elem(attach_map_fd(backend, "sites"), key, &value, BPF_NOEXIST) < 0)
		return -errno;
	grown[backend->signatures_n++] = (struct attach_signature){ .key = *key, .site = value };
	return 0;
}

static int add(struct attachment *attachment, const struct attach_site *site, uint8_t *ret_salt)
{
	struct attach_backend *backend = attachment->backend;
	uint64_t value = attach_site_value(site);

	for (uint8_t salt = 0; salt < ATTACH_SALTS_MAX; salt++) {
		struct attach_signature *known;
		struct trace_signature key;
		int r = signature_of(site, salt, &key);

		if (r < 0)
			return r;
		known = signature_find(backend, &key);
		if (known && known->site != value)
			continue;
		if (!known) {
			r = insert(backend, &key, value);
			if (r < 0)
				return r;
			known = &backend->signatures[backend->signatures_n - 1];
		}
		known->refs++;
		attachment->signatures[attachment->signatures_n++] = key;
		*ret_salt = salt;
		return 0;
	}
	return -ENOSPC;
}

int attach_signatures_add(struct attachment *attachment, const struct attach_site *sites, size_t n,
			  uint8_t *salts)
{
	attachment->signatures = calloc(n, sizeof(*attachment->signatures));
	if (!attachment->signatures)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r = add(attachment, &sites[i], &salts[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

void attach_signatures_remove(struct attachment *attachment)
{
	struct attach_backend *backend = attachment->backend;

	for (size_t i = 0; i < attachment->signatures_n; i++) {
		struct attach_signature *known = signature_find(backend, &attachment->signatures[i]);

		if (!known || --known->refs)
			continue;
		bpf_map_delete_elem(attach_map_fd(backend, "sites"), &known->key);
		*known = backend->signatures[--backend->signatures_n];
	}
	free(attachment->signatures);
}
