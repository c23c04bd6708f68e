// SPDX-License-Identifier: Apache-2.0
/* "gpusonde report": what was done in a time, for whom, as text, JSON, Markdown or HTML. */
#include "cmd/recording/report.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "view/json/json.h"
#include "view/names.h"

/* ---- what is asked for ---- */

static bool refuse_flag(const struct invocation *inv, const char *what, const char *text, const char *must)
{
	fprintf(stderr, "gpusonde %s: %s cannot be \"%.80s\": it must be %s\n", inv->command->name, what,
		text, must);
	return false;
}

bool report_selection(const struct invocation *inv, struct selection *ret_selection)
{
	const char *user = inv->flag[FLAG_USER];
	const struct passwd *entry = user ? getpwnam(user) : NULL;
	uint64_t number = UINT32_MAX;

	if (user && !entry && (parse_u64(user, &number) < 0 || number >= UINT32_MAX))
		return refuse_flag(inv, "--user", user, "a user of this machine, or a number");
	*ret_selection = (struct selection){
		.pod = inv->flag[FLAG_POD],
		.container = inv->flag[FLAG_CONTAINER],
		.job = inv->flag[FLAG_JOB],
		.uid = entry ? entry->pw_uid : (uint32_t)number,
	};
	return true;
}

static bool parse_time(const struct invocation *inv, const char *what, const char *text, int64_t *ret_ns)
{
	return !text || !*text || moment_parse(text, clock_real_ns(), ret_ns) == 0 ||
	       refuse_flag(inv, what, text, "a time such as 2026-01-31T23:59, or how long ago: 10m, 24h");
}

/* Pages tell times to the millisecond: up to one of them means to its end. */
static bool parse_until(const struct invocation *inv, const char *what, const char *text, int64_t *ret_ns)
{
	if (!parse_time(inv, what, text, ret_ns))
		return false;
	if (text && *text)
		*ret_ns += NSEC_PER_MSEC - 1;
	return true;
}

bool report_period(const struct invocation *inv, const char *operand, char **ret_path, int64_t *ret_since_ns,
		   int64_t *ret_until_ns)
{
	_cleanup_free_ char *path = strdup(operand);
	char *at = path ? strrchr(path, '@') : NULL, *until = at ? strstr(at, "..") : NULL;

	if (!path)
		return false;
	*ret_since_ns = INT64_MIN;
	*ret_until_ns = INT64_MAX;
	if (until) {
		*at = *until = '\0';
		if (!parse_time(inv, "the time behind @", at + 1, ret_since_ns) ||
		    !parse_until(inv, "the time behind ..", until + 2, ret_until_ns))
			return false;
	}
	if (!parse_time(inv, "--since", inv->flag[FLAG_SINCE], ret_since_ns) ||
	    !parse_until(inv, "--until", inv->flag[FLAG_UNTIL], ret_until_ns))
		return false;
	*ret_path = TAKE_PTR(path);
	return true;
}

bool report_price(const struct invocation *inv, struct report_price *ret_price)
{
	const char *text = inv->flag[FLAG_PRICE];
	char number[32];
	size_t n;

	*ret_price = (struct report_price){ 0 };
	if (!text)
		return true;
	n = strspn(text, "0123456789.");
	snprintf(number, sizeof(number), "%.*s", (int)MIN(n, sizeof(number) - 1), text);
	if (parse_double(number, &ret_price->of_kwh) < 0 || strlen(text + n) >= sizeof(ret_price->currency) ||
	    !text_is_printable(text + n))
		return refuse_flag(inv, "--price", text, "a number and perhaps a currency, such as 0.30EUR");
	strcpy(ret_price->currency, text + n);
	return true;
}

/* ---- reading ---- */

static int read_account(struct store_reader *reader, struct account *account, uint32_t tier)
{
	struct snapshot *snapshot;
	struct store_walk walk;
	int r;

	store_walk_begin(&walk, reader, tier, account->since_ns, account->until_ns);
	while ((r = store_walk_next(&walk, &snapshot)) > 0) {
		r = account_add(account, snapshot, store_tiers[tier].period_ns);
		restored_free(snapshot);
		if (r < 0)
			return r;
	}
	return r;
}

static struct account *account_of(struct store_reader *reader, const struct selection *selection,
				  int64_t since_ns, int64_t until_ns, char *why, size_t size)
{
	struct account *account = NULL;
	int64_t first_ns, last_ns;
	int r = -ENOENT;

	if (store_whole_span(reader, &first_ns, &last_ns)) {
		since_ns = MAX(since_ns, first_ns);
		until_ns = MIN(until_ns, last_ns);
		r = since_ns > until_ns ? -ENOENT : account_new(selection, since_ns, until_ns, &account);
	}
	if (r == 0)
		r = read_account(reader, account, store_best_tier(reader, since_ns));
	if (r == 0 && account->frames == 0)
		r = -ENOENT;
	if (r == 0) {
		account_finish(account);
		return account;
	}
	snprintf(why, size, "%s",
		 r == -ENOENT                ? "nothing of that time is recorded" :
		 *store_reader_error(reader) ? store_reader_error(reader) :
					       strerror(-r));
	account_free(account);
	return NULL;
}

struct account *report_account(const struct invocation *inv, const char *path, int64_t since_ns,
			       int64_t until_ns)
{
	_cleanup_(store_reader_freep) struct store_reader *reader = NULL;
	struct account *account = NULL;
	struct selection selection;
	char why[300] = "";

	if (!report_selection(inv, &selection))
		return NULL;
	if (store_reader_open(path, &reader, why, sizeof(why)) == 0)
		account = account_of(reader, &selection, since_ns, until_ns, why, sizeof(why));
	if (!account)
		fprintf(stderr, "gpusonde %s: %s: %s\n", inv->command->name, path, why);
	return account;
}

/* ---- JSON ---- */

static json_t *amount_json(const struct amount *amount)
{
	return amount->known ? json_number(amount->value) : json_null();
}

static json_t *gpu_json(const struct account_gpu *gpu)
{
	json_t *object = json_object(), *throttled = json_object();

	json_object_set_new(object, "gpu", json_integer(gpu->index));
	json_object_set_new(object, "uuid", json_text(gpu->uuid));
	json_object_set_new(object, "instance", json_text_or_null(gpu->instance));
	json_object_set_new(object, "name", json_text(gpu->name));
	json_object_set_new(object, "observed_seconds", amount_json(&gpu->observed));
	json_object_set_new(object, "busy_seconds", amount_json(&gpu->busy));
	json_object_set_new(object, "energy_joules", amount_json(&gpu->energy));
	json_object_set_new(object, "memory_peak_bytes", amount_json(&gpu->memory_peak));
	for (unsigned i = 0; i < GPU_METRICS; i++)
		if (strncmp(gpu_metrics[i].id, "THROTTLE_", 9) == 0 && gpu_metrics[i].value)
			json_object_set_new(throttled, gpu_metrics[i].value,
					    amount_json(&gpu->slots[gpu_metrics[i].slot]));
	json_object_set_new(object, "throttled_seconds", throttled);
	return object;
}

static json_t *who_json(const struct account_who *who)
{
	json_t *object = json_object();

	json_object_set_new(object, "kind",
			    who->kind == WORKLOAD_NONE ? json_string("user") :
							 json_string(workload_kind_name(who->kind)));
	json_object_set_new(object, "id", json_text_or_null(who->id));
	json_object_set_new(object, "namespace", json_text_or_null(who->namespace));
	json_object_set_new(object, "pod", json_text_or_null(who->pod));
	json_object_set_new(object, "container", json_text_or_null(who->container));
	json_object_set_new(object, "job_name_claimed", json_text_or_null(who->job_name));
	json_object_set_new(object, "allocated_seconds", amount_json(&who->allocated));
	json_object_set_new(object, "allocated_idle_seconds", amount_json(&who->idle));
	json_object_set_new(object, "busy_seconds", amount_json(&who->busy));
	json_object_set_new(object, "energy_joules_estimated", amount_json(&who->energy));
	json_object_set_new(object, "memory_peak_bytes", amount_json(&who->memory_peak));
	json_object_set_new(object, "launches", amount_json(&who->launches));
	json_object_set_new(object, "errors", amount_json(&who->errors));
	json_object_set_new(object, "processes", json_integer(who->processes));
	json_object_set_new(object, "processes_ended", json_integer(who->ended));
	return object;
}

/* null: nothing was traced. */
static json_t *items_json(const struct account *account, const struct account_items *items)
{
	json_t *list;

	if (!account->traced)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < items->n; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "name", json_text(items->list[i].name));
		json_object_set_new(object, "count", json_number(items->list[i].count));
		json_object_set_new(object, "seconds", json_number(items->list[i].seconds));
		json_object_set_new(object, "bytes", json_number(items->list[i].bytes));
		json_object_set_new(object, "errors", json_number(items->list[i].errors));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *xids_json(const struct account *account)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < account->xids_n; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "uuid", json_text_or_null(account->xids[i].uuid));
		json_object_set_new(object, "pci_bus_id", json_text(account->xids[i].pci_bus_id));
		json_object_set_new(object, "xid", json_integer(account->xids[i].code));
		json_object_set_new(object, "count", json_number(account->xids[i].count));
		json_object_set_new(object, "last_seen", json_time(account->xids[i].last_real_ns));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *finding_json(struct json_maker *j, const struct account_finding *finding)
{
	json_t *object = json_object();

	json_put(j, object, "finding", json_text(finding->name));
	json_put(j, object, "title", json_text(finding->title));
	json_put(j, object, "caused_by", json_text_or_null(finding->cause ? finding->cause : ""));
	json_put(j, object, "pid", json_positive_or_null(finding->f.pid));
	json_put(j, object, "device", json_text_or_null(finding->f.device));
	json_put(j, object, "subject", json_text_or_null(finding->f.subject));
	json_put(j, object, "confidence", json_number(finding->f.confidence));
	json_put(j, object, "begin", json_time(finding->begin_real_ns));
	json_put(j, object, "end", json_time(finding->end_real_ns));
	json_put(j, object, "evidence", json_finding_values(j, &finding->f));
	json_put(j, object, "remedy", json_text(finding->remedy));
	return object;
}

/* null: nothing was analysed. */
static json_t *findings_json(const struct account *account)
{
	struct json_maker j = { 0 };
	json_t *list;

	if (!account->analysed)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < account->findings_n; i++)
		json_push(&j, list, finding_json(&j, &account->findings[i]));
	return list;
}

json_t *report_json(const struct account *account, const struct report_price *price)
{
	json_t *object = json_object(), *gpus = json_array(), *who = json_array();

	for (uint32_t i = 0; i < account->gpus_n && !account_selects(account); i++)
		json_array_append_new(gpus, gpu_json(&account->gpus[i]));
	for (uint32_t i = 0; i < account->who_n; i++)
		json_array_append_new(who, who_json(&account->who[i]));
	json_object_set_new(object, "schema", json_string("gpusonde/report/v1"));
	json_object_set_new(object, "simulated", json_boolean(account->simulated));
	json_object_set_new(object, "hostname", json_text(account->hostname));
	json_object_set_new(object, "first", json_time(account->first_real_ns));
	json_object_set_new(object, "last", json_time(account->last_real_ns));
	json_object_set_new(object, "snapshots", json_integer((json_int_t)account->frames));
	json_object_set_new(object, "recorded_seconds", json_number(account->covered_seconds));
	json_object_set_new(object, "missing_seconds", json_number(account->missing_seconds));
	json_object_set_new(object, "left_out", json_integer((json_int_t)account->left_out));
	json_object_set_new(object, "price_of_kwh",
			    price->of_kwh > 0 ? json_number(price->of_kwh) : json_null());
	json_object_set_new(object, "currency", json_text_or_null(price->currency));
	json_object_set_new(object, "gpus", gpus);
	json_object_set_new(object, "who", who);
	json_object_set_new(object, "xids", account_selects(account) ? json_null() : xids_json(account));
	json_object_set_new(object, "calls", items_json(account, &account->calls));
	json_object_set_new(object, "collectives", items_json(account, &account->collectives));
	json_object_set_new(object, "kernels", items_json(account, &account->kernels));
	json_object_set_new(object, "operators", items_json(account, &account->operators));
	json_object_set_new(object, "findings", findings_json(account));
	return object;
}

/* ---- the command ---- */

static int parse_format(const struct invocation *inv)
{
	static const char *const names[DOCUMENT_FORMATS] = { "text", "markdown", "html" };
	const char *text = inv->flag[FLAG_FORMAT];

	for (int i = 0; i < DOCUMENT_FORMATS; i++)
		if (STRV_EQ(text ? text : "text", names[i]))
			return i;
	refuse_flag(inv, "--format", text, "text, markdown or html (or --json)");
	return -1;
}

static int write_report(const struct invocation *inv, const struct account *account,
			const struct report_price *price, enum document_format format)
{
	struct document document;
	struct strbuf out;
	int status;

	strbuf_init(&out, 0);
	if (inv->flag[FLAG_JSON]) {
		json_write(report_json(account, price), 0, &out);
		strbuf_addc(&out, '\n');
	} else {
		document_begin(&document, format, "GPU report", &out);
		report_write(account, price, &document);
		document_end(&document);
	}
	status = put_stdout(&out);
	strbuf_done(&out);
	return status;
}

int report_main(struct invocation *inv)
{
	const char *file =
		inv->operands_n > 0 ? inv->operands[0] : options_text(&inv->options, OPT_recording_path);
	_cleanup_free_ char *path = NULL;
	int64_t since_ns, until_ns;
	struct report_price price;
	struct account *account;
	int format = parse_format(inv), status;

	if (!file) {
		fprintf(stderr, "gpusonde report: name the file that was recorded (or set recording.path)\n");
		return EXIT_USAGE;
	}
	if (format < 0 || !report_price(inv, &price) ||
	    !report_period(inv, file, &path, &since_ns, &until_ns))
		return EXIT_USAGE;
	account = report_account(inv, path, since_ns, until_ns);
	if (!account)
		return EXIT_FAILURE;
	status = write_report(inv, account, &price, format);
	account_free(account);
	return status;
}
