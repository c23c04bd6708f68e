// SPDX-License-Identifier: Apache-2.0
#include "agent/dcgm/targets.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"

/* As many as the process keeps of a page (dcgm/page.h). */
enum { ROWS_MAX = 2048 };

#define END_STRING(text_)                          \
	do {                                       \
		(text_)[sizeof(text_) - 1] = '\0'; \
		utf8_sanitize(text_);              \
	} while (0)

static void drop_coming(struct exporter *e)
{
	free(TAKE_PTR(e->coming.rows));
	free(TAKE_PTR(e->coming.devices));
	e->coming.rows_n = e->coming.devices_n = 0;
}

static void exporter_done(struct exporter *e)
{
	drop_coming(e);
	free(e->rows);
	free(e->devices);
	free(e->before);
}

static struct exporter *find(struct dcgm_targets *targets, const char *url, const char *node)
{
	for (uint32_t i = 0; targets && i < targets->n; i++)
		if (STRV_EQ(targets->list[i].url, url) && STRV_EQ(targets->list[i].node, node))
			return &targets->list[i];
	return NULL;
}

int dcgm_targets_add(struct dcgm_targets *targets, struct dcgm_targets *old, const char *url,
		     const char *node)
{
	struct exporter *list, *known = find(old, url, node);

	if (find(targets, url, node))
		return 0;
	list = realloc(targets->list, (targets->n + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	targets->list = list;
	list += targets->n++;
	if (known) {
		*list = *known;
		*known = (struct exporter){ 0 };
		return 0;
	}
	*list = (struct exporter){ 0 };
	snprintf(list->url, sizeof(list->url), "%s", url);
	snprintf(list->node, sizeof(list->node), "%s", node);
	return 0;
}

void dcgm_targets_done(struct dcgm_targets *targets)
{
	for (uint32_t i = 0; i < targets->n; i++)
		exporter_done(&targets->list[i]);
	free(TAKE_PTR(targets->list));
	targets->n = 0;
}

void dcgm_targets_drop_coming(struct dcgm_targets *targets)
{
	for (uint32_t i = 0; i < targets->n; i++)
		drop_coming(&targets->list[i]);
}

void dcgm_targets_begin(struct dcgm_targets *targets)
{
	dcgm_targets_drop_coming(targets);
	for (uint32_t i = 0; i < targets->n; i++)
		targets->list[i].ended = false;
}

/* Adds @n elements of @size bytes to the @at that @list has; NULL: no memory, and the list is as before. */
static void *append(void *list, uint32_t at, const void *more, uint32_t n, size_t size)
{
	uint8_t *longer = realloc(list, (at + n + 1u) * size);

	if (longer)
		memcpy(longer + at * size, more, n * size);
	return longer;
}

static bool take_rows(struct exporter *e, const struct dcgm_part *part)
{
	struct scraped_row *rows;

	if (part->n > ROWS_MAX - e->coming.rows_n)
		return false;
	rows = append(e->coming.rows, e->coming.rows_n, part->rows, part->n, sizeof(*rows));
	if (!rows)
		return false;
	e->coming.rows = rows;
	e->coming.rows_n += part->n;
	return true;
}

static bool take_devices(struct exporter *e, struct dcgm_part *part)
{
	struct dcgm_device *devices;

	if (part->n > READING_ENTITIES_MAX - e->coming.devices_n)
		return false;
	for (uint32_t i = 0; i < part->n; i++) {
		END_STRING(part->devices[i].uuid);
		END_STRING(part->devices[i].name);
		END_STRING(part->devices[i].pci_bus_id);
		END_STRING(part->devices[i].mig_profile);
		END_STRING(part->devices[i].driver_version);
	}
	devices = append(e->coming.devices, e->coming.devices_n, part->devices, part->n, sizeof(*devices));
	if (!devices)
		return false;
	e->coming.devices = devices;
	e->coming.devices_n += part->n;
	return true;
}

bool dcgm_targets_take(struct dcgm_targets *targets, struct dcgm_part *part, size_t n)
{
	const size_t header = offsetof(struct dcgm_part, rows);
	struct exporter *e;

	if (n < header || part->target >= targets->n || targets->list[part->target].ended)
		return false;
	e = &targets->list[part->target];
	if (part->message == DCGM_PART_ROWS)
		return part->n <= DCGM_ROWS && n == header + part->n * sizeof(part->rows[0]) &&
		       take_rows(e, part);
	return part->n <= DCGM_DEVICES && n == header + part->n * sizeof(part->devices[0]) &&
	       take_devices(e, part);
}

/* One that fails in turns would write a line each time. */
static void log_change(struct exporter *e, enum scrape_failure failure)
{
	static struct log_limit limit = { .burst = 10,
					  .interval_ns = 600 * NSEC_PER_SEC,
					  .what = "changes of DCGM exporters" };

	if (failure == e->failure || !log_limit_allow(&limit))
		return;
	if (failure == SCRAPE_READ)
		log_notice("the DCGM exporter %s is read again", e->url);
	else
		log_warning("the DCGM exporter %s%s", e->error,
			    e->boot_ns ? "; what it said before stays" : "");
}

static void set_error(struct exporter *e, struct dcgm_outcome *outcome)
{
	static const char *const words[SCRAPE_FAILURES] = {
#define SCRAPE_FAILURE(id_, name_, words_) [SCRAPE_FAILED_##id_] = (words_),
#include "model/scraped.def"
	};

	END_STRING(outcome->error);
	e->error[0] = '\0';
	if (outcome->failure != SCRAPE_READ)
		snprintf(e->error, sizeof(e->error), "%.90s: %s (%.110s)", e->url, words[outcome->failure],
			 outcome->error);
	utf8_sanitize(e->error);
}

static void take_page(struct exporter *e, const struct dcgm_outcome *outcome, int64_t now_boot_ns)
{
	free(e->rows);
	free(e->before);
	e->before = e->devices;
	e->before_n = e->devices_n;
	e->rows = e->coming.rows;
	e->rows_n = e->coming.rows_n;
	e->devices = e->coming.devices;
	e->devices_n = e->coming.devices_n;
	e->coming = (struct exporter_page){ 0 };
	e->boot_ns = MIN(outcome->boot_ns, now_boot_ns);
	e->simulated = outcome->simulated != 0;
	for (uint32_t i = 0; i < e->rows_n; i++) {
		e->rows[i].boot_ns = e->boot_ns;
		e->rows[i].real_ns = outcome->real_ns;
	}
}

bool dcgm_targets_end(struct dcgm_targets *targets, struct dcgm_outcome *outcome, int64_t now_boot_ns)
{
	struct exporter *e;

	if (outcome->target >= targets->n || targets->list[outcome->target].ended)
		return false;
	e = &targets->list[outcome->target];
	e->ended = true;
	set_error(e, outcome);
	log_change(e, outcome->failure);
	e->failure = outcome->failure;
	if (outcome->failure == SCRAPE_READ)
		take_page(e, outcome, now_boot_ns);
	else
		drop_coming(e);
	return true;
}

bool dcgm_targets_are_whole(const struct dcgm_targets *targets)
{
	for (uint32_t i = 0; i < targets->n; i++)
		if (!targets->list[i].ended)
			return false;
	return true;
}

uint32_t dcgm_targets_rows(const struct dcgm_targets *targets)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < targets->n; i++)
		n += targets->list[i].rows_n;
	return n;
}
