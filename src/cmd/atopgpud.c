// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde atopgpud: a drop-in replacement for the daemon of atop. Its unit expects exit status 0 on a
 * machine without a GPU, so that systemd neither restarts it nor reports a failure.
 */
#include "cmd/cmd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/log.h"
#include "agent/atop_listeners.h"
#include "agent/driver/collector.h"
#include "agent/readiness.h"
#include "config.h"

struct atopgpud {
	const struct options *options;
	sd_event *event;
	struct collector *collector;
	struct atop_listeners *listeners;
	int64_t tick_ns;
	bool started; /* the first reading has been handled */
};

/* Either a driver without GPUs, or no driver and no GPU on the bus. Else the driver may still be loaded. */
static bool has_no_gpu(const struct snapshot *snapshot)
{
	enum reading_state state = snapshot_driver(snapshot)->state;

	if (state == READING_OK)
		return snapshot->entities_n == 0;
	return (state == READING_NO_LIBRARY || state == READING_NO_DRIVER) && pci_gpus(PCI_DEVICES) <= 0;
}

static void on_published(const struct snapshot *snapshot, void *userdata)
{
	struct atopgpud *d = userdata;

	if (d->started || collector_readings(d->collector) == 0)
		return;
	d->started = true;
	if (has_no_gpu(snapshot)) {
		log_info("no GPU on this machine, nothing to serve%s%s",
			 snapshot_driver(snapshot)->error[0] ? ": " : "", snapshot_driver(snapshot)->error);
		sd_event_exit(d->event, EXIT_SUCCESS);
		return;
	}
	if (atop_listeners_new(d->event, d->options, d->collector, &d->listeners) < 0 ||
	    atop_listeners_open(d->listeners) == 0) {
		log_error("none of atop's addresses could be opened: stop the programs that use them, or "
			  "change atop.listen and atop.socket");
		sd_event_exit(d->event, EXIT_FAILURE);
		return;
	}
	sd_notify(false, "READY=1");
}

static int on_tick(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct atopgpud *d = userdata;
	int r;

	collector_tick(d->collector);
	d->tick_ns = MAX(d->tick_ns + options_number(d->options, OPT_sample_period), clock_boot_ns());
	r = sd_event_source_set_time(source, (uint64_t)(d->tick_ns / NSEC_PER_USEC));
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int run(struct atopgpud *d)
{
	struct collector_config config = { .published = on_published, .userdata = d };
	sigset_t mask;
	int r = sd_event_default(&d->event);

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(d->event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true);
	if (r >= 0)
		r = collector_new(d->event, d->options, &config, &d->collector);
	d->tick_ns = clock_boot_ns();
	if (r >= 0)
		r = sd_event_add_time(d->event, NULL, CLOCK_BOOTTIME, (uint64_t)(d->tick_ns / NSEC_PER_USEC),
				      1000, on_tick, d);
	return r < 0 ? r : sd_event_loop(d->event);
}

int atopgpud_main(struct invocation *inv)
{
	struct atopgpud d = { .options = &inv->options };
	int level = inv->flag[FLAG_VERBOSE] ? LOG_DEBUG : (int)options_number(&inv->options, OPT_log_level);
	int r;

	log_setup(LOG_TARGET_SYSLOG, level, "atopgpud");
	log_debug("gpusonde %s running as atopgpud", GPUSONDE_VERSION);
	r = run(&d);
	if (r < 0)
		log_error("exiting: %s", strerror(-r));
	atop_listeners_free(d.listeners);
	collector_free(d.collector);
	sd_event_unref(d.event);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
