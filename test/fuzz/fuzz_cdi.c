// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cdi/cdi.h"

static void check(const struct device_ref *refs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (refs[i].kind == DEVICE_NOT || !memchr(refs[i].uuid, 0, sizeof(refs[i].uuid)) ||
		    (refs[i].kind == DEVICE_BY_MINOR && refs[i].index >= NVIDIA_MINORS))
			abort();
}

/* The first byte chooses: a specification, or the driver's list of capabilities. */
int fuzz_one(const uint8_t *data, size_t size)
{
	static const char list[] = "gpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\n";
	struct mig_caps caps;
	struct cdi *cdi;
	uint32_t n;

	if (size == 0)
		return 0;
	if (data[0] % 2) {
		if (mig_caps_parse((const char *)data + 1, size - 1, &caps) == 0)
			mig_caps_done(&caps);
		return 0;
	}
	if (mig_caps_parse(list, sizeof(list) - 1, &caps) < 0 || cdi_new(&cdi) < 0)
		return 0;
	if (cdi_add(cdi, (const char *)data + 1, size - 1, &caps) == 0) {
		const struct device_ref *refs = cdi_find(cdi, "nvidia.com/gpu=0", &n);

		if (refs)
			check(refs, n);
		refs = cdi_find_claimed(cdi, "gpu.nvidia.com", "gpu-0", &n);
		if (refs)
			check(refs, n);
	}
	cdi_free(cdi);
	mig_caps_done(&caps);
	return 0;
}
