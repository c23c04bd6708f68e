// SPDX-License-Identifier: Apache-2.0
#include "nvml/stamps.h"

#include <string.h>

#include "base/clock.h"
#include "nvml/reader.h"

/* A clock that is off by more than this from one reading to the next was set. */
#define STEP_NS NSEC_PER_SEC
/* Readings in which it then has to go on evenly before it is believed. */
#define UNSTEADY 3
/* Beyond, our own time of the reading is nearer. */
#define ERROR_MAX_NS NSEC_PER_SEC
#define STAMP_MAX_US (UINT64_C(1) << 52)

static int64_t highest(const struct driver_clock *c)
{
	int64_t best_ns = INT64_MIN;

	for (unsigned i = 0; i < MIN(c->n, (unsigned)STAMPS_KEPT); i++)
		best_ns = MAX(best_ns, c->least_ns[i]);
	return best_ns;
}

/* Times of before it was set would be told by the clock of after. */
static void clock_set(struct driver_clock *c)
{
	c->n = 0;
	c->unsteady = UNSTEADY;
	memset(c->at_ns, 0, sizeof(c->at_ns));
}

void stamps_look(struct driver_clock *c, uint32_t pass, uint64_t stamp_us, int64_t begin_ns, int64_t end_ns,
		 int64_t late_us)
{
	int64_t least_ns, off_ns;

	if (stamp_us == 0 || c->pass == pass)
		return;
	c->pass = pass;
	c->refused |= stamp_us > STAMP_MAX_US;
	if (stamp_us > STAMP_MAX_US)
		return;
	least_ns = (int64_t)stamp_us * 1000 - end_ns;
	off_ns = c->n > 0 ? least_ns - c->offset_ns : 0;
	c->unsteady -= c->unsteady > 0;
	if (off_ns > STEP_NS || off_ns < -STEP_NS)
		clock_set(c);
	c->least_ns[c->n++ % STAMPS_KEPT] = least_ns;
	c->offset_ns = highest(c);
	c->error_ns = end_ns - begin_ns + late_us * 1000 + (c->offset_ns - least_ns);
	/* Some count milliseconds. */
	c->error_ns += stamp_us % 1000 == 0 ? NSEC_PER_MSEC : NSEC_PER_USEC;
}

static bool usable(const struct driver_clock *c)
{
	return c->n > 0 && c->unsteady == 0 && c->error_ns <= ERROR_MAX_NS;
}

void stamps_put(struct driver_clock *c, enum stamped what, uint64_t stamp_us)
{
	int64_t now_ns = clock_boot_ns(), at_ns;

	c->at_ns[what] = 0;
	if (stamp_us == 0 || stamp_us > STAMP_MAX_US || !usable(c))
		return;
	at_ns = (int64_t)stamp_us * 1000 - c->offset_ns;
	if (at_ns <= now_ns && at_ns > now_ns - STAMP_AGE_MAX_NS)
		c->at_ns[what] = at_ns;
	else
		c->refused = true;
}

void stamps_read(_unused_ struct reader *reader, struct device *device)
{
	struct driver_clock *c = &device->clock;
	struct reading_stamps *stamps = &device->entity->stamps;
	int64_t now_ns = clock_boot_ns();

	*stamps = (struct reading_stamps){ .unusable = c->refused || (c->n > 0 && !usable(c)) };
	c->refused = false;
	if (c->n == 0)
		return;
	stamps->offset_ns = c->offset_ns - (clock_real_ns() - now_ns);
	stamps->error_ns = c->error_ns;
	memcpy(stamps->at_ns, c->at_ns, sizeof(stamps->at_ns));
}

void stamps_forget(struct device *device)
{
	device->clock = (struct driver_clock){ 0 };
	memset(&device->entity->stamps, 0, sizeof(device->entity->stamps));
}
