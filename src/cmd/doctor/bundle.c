// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cmd/doctor/archive.h"
#include "serve/encoding.h"

static const struct {
	const char *name, *help;
	enum bundle_form form;
	void (*make)(const struct bundle_source *source, struct bundle_item *item);
} table[] = {
#define ITEM(name_, function_, form_, help_) { name_, help_, BUNDLE_##form_, function_ },
#include "cmd/doctor/bundle.def"
#undef ITEM
};

enum { ITEMS = ARRAY_SIZE(table) };

static const char *const help_of_contents = "this list";

struct bundle {
	struct bundle_item items[ITEMS];
	struct redactor *redactor;
	struct strbuf contents, tar, packed;
};

void bundle_lacks(struct bundle_item *item, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(item->why, sizeof(item->why), fmt, args);
	va_end(args);
}

static int encoding_of(const char *path, enum http_encoding *ret_encoding)
{
	static const struct {
		const char *suffix;
		enum http_encoding encoding;
	} suffixes[] = { { ".tar.zst", HTTP_ZSTD }, { ".tar.gz", HTTP_GZIP } };
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t m = strlen(suffixes[i].suffix);

		if (n > m && STRV_EQ(path + n - m, suffixes[i].suffix)) {
			*ret_encoding = suffixes[i].encoding;
			return 0;
		}
	}
	return -EINVAL;
}

bool bundle_flags_valid(const struct invocation *inv)
{
	enum http_encoding encoding;

	if (!inv->flag[FLAG_BUNDLE]) {
		if (inv->flag[FLAG_YES] || inv->flag[FLAG_WITH_NAMES])
			fprintf(stderr, "gpusonde doctor: --yes and --with-names go with --bundle FILE\n");
		return !inv->flag[FLAG_YES] && !inv->flag[FLAG_WITH_NAMES];
	}
	if (inv->flag[FLAG_DOCTOR_PID] || inv->flag[FLAG_JSON] || inv->flag[FLAG_QUIET]) {
		fprintf(stderr,
			"gpusonde doctor: --bundle goes without --pid, --json and --quiet: it has all\n");
		return false;
	}
	if (encoding_of(inv->flag[FLAG_BUNDLE], &encoding) == 0)
		return true;
	fprintf(stderr, "gpusonde doctor: --bundle %s: the name must end with .tar.zst or .tar.gz\n",
		inv->flag[FLAG_BUNDLE]);
	return false;
}

static int explain_place(const char *path, int r)
{
	if (r < 0)
		fprintf(stderr, "gpusonde doctor: %s: %s%s\n", path, strerror(-r),
			r == -EEXIST ? ": name a file that is not there yet" : "");
	return r;
}

int bundle_check_place(const struct invocation *inv)
{
	const char *path = inv->flag[FLAG_BUNDLE];
	const char *slash = path ? strrchr(path, '/') : NULL;
	char folder[PATH_MAX] = ".";
	struct stat st;
	int r = 0;

	if (!path)
		return 0;
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)MAX(slash - path, (ptrdiff_t)1), path);
	if (lstat(path, &st) == 0)
		r = -EEXIST;
	else if (errno != ENOENT || access(folder, W_OK | X_OK) < 0)
		r = -errno;
	return explain_place(path, r);
}

/* ---- collecting ---- */

static void make_items(struct bundle *bundle, const struct bundle_source *source)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		struct bundle_item *item = &bundle->items[i];

		if (clock_boot_ns() < source->end_ns)
			table[i].make(source, item);
		else
			bundle_lacks(item, "left out after %d seconds", BUNDLE_SECONDS);
		if (item->form == BUNDLE_LABELS)
			redactor_learn_labels(bundle->redactor, item->text.data);
		else if (item->json)
			redactor_learn_json(bundle->redactor, item->json);
	}
}

static void redact_item(struct redactor *redactor, struct bundle_item *item)
{
	struct strbuf out;
	char *text = NULL;

	strbuf_init(&out, BUNDLE_ITEM_MAX);
	if (item->form == BUNDLE_TEXT)
		redact_text(redactor, item->text.data, &out, item->redacted);
	else if (item->form == BUNDLE_LABELS)
		redact_labels(redactor, item->text.data, &out, item->redacted);
	else if (item->json && redact_json(redactor, item->json, item->redacted) == 0)
		text = json_dumps(item->json, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	if (text)
		strbuf_addf(&out, "%s\n", text);
	free(text);
	/* A part of a document would be none. */
	if (out.failed && item->form == BUNDLE_JSON)
		strbuf_reset(&out);
	if (out.failed || item->text.failed || (item->json && out.len == 0))
		bundle_lacks(item, "larger than %d MiB%s", BUNDLE_ITEM_MAX >> 20,
			     item->form == BUNDLE_JSON ? "" : ": its beginning");
	strbuf_done(&item->text);
	item->text = out;
}

static void describe_item(struct strbuf *out, const struct bundle_item *item)
{
	unsigned n = 0;

	strbuf_addf(out, "%-20s %9zu  %s", item->name, item->text.len, item->help);
	for (unsigned k = 0; k < REDACT_KINDS; k++)
		if (item->redacted[k] > 0)
			strbuf_addf(out, "%s%u of %s", n++ == 0 ? "; replaced: " : ", ", item->redacted[k],
				    redact_words[k]);
	if (item->why[0])
		strbuf_addf(out, "; %s", item->why);
	strbuf_addc(out, '\n');
}

static void list_items(struct bundle *bundle, bool with_names)
{
	struct strbuf *out = &bundle->contents;

	strbuf_addf(out, "%-20s %9s  %s\n", "file", "bytes", "what");
	strbuf_addf(out, "%-20s %9s  %s\n", "contents.txt", "", help_of_contents);
	for (unsigned i = 0; i < ITEMS; i++)
		describe_item(out, &bundle->items[i]);
	if (with_names)
		strbuf_adds(out, "\nSecrets are replaced by <secret>. Names that people chose are in it.\n");
	else
		strbuf_adds(out,
			    "\nSecrets are replaced by <secret>, and names that people chose by <user-1>, "
			    "<pod-2>, ...: the same name\n"
			    "by the same word everywhere. Names of less than 4 characters may be left in "
			    "sentences.\n");
}

static int pack(struct bundle *bundle, enum http_encoding encoding)
{
	int64_t now = clock_real_ns() / NSEC_PER_SEC;
	int r = archive_add(&bundle->tar, "gpusonde/contents.txt", bundle->contents.data,
			    bundle->contents.len, now);

	for (unsigned i = 0; r == 0 && i < ITEMS; i++) {
		const struct bundle_item *item = &bundle->items[i];
		char name[ARCHIVE_NAME_MAX];

		snprintf(name, sizeof(name), "gpusonde/%s", item->name);
		if (item->text.len > 0)
			r = archive_add(&bundle->tar, name, item->text.data, item->text.len, now);
	}
	if (r == 0)
		r = archive_end(&bundle->tar);
	return r == 0 ? encoding_apply(encoding, &bundle->tar, &bundle->packed) : r;
}

/* ---- writing ---- */

/* False: the cause was printed. */
static bool is_confirmed(const struct invocation *inv, size_t bytes)
{
	char answer[16] = "";

	if (inv->flag[FLAG_YES])
		return true;
	if (!isatty(STDIN_FILENO)) {
		fprintf(stderr,
			"gpusonde doctor: nothing was written: no terminal to ask on; --yes says that "
			"this may be\n");
		return false;
	}
	fprintf(stderr, "Write these %zu bytes to %s? [y/N] ", bytes, inv->flag[FLAG_BUNDLE]);
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	fprintf(stderr, "gpusonde doctor: nothing was written\n");
	return false;
}

/* Never over a file that is there, nor through a link. */
static int write_new(const char *path, const struct strbuf *data)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -errno : write_all(fd, data->data, data->len);

	if (n >= 0 && fsync(fd) < 0)
		n = -errno;
	if (n < 0 && fd >= 0)
		unlink(path);
	return n < 0 ? (int)n : 0;
}

static int list_and_write(struct bundle *bundle, const struct invocation *inv)
{
	const char *path = inv->flag[FLAG_BUNDLE];
	enum http_encoding encoding = HTTP_GZIP;
	int r;

	encoding_of(path, &encoding);
	list_items(bundle, inv->flag[FLAG_WITH_NAMES]);
	if (put_stdout(&bundle->contents) != EXIT_SUCCESS)
		return EXIT_FAILURE;
	fflush(stdout);
	r = pack(bundle, encoding);
	if (r == 0 && !is_confirmed(inv, bundle->packed.len))
		return EXIT_FAILURE;
	if (r == 0)
		r = write_new(path, &bundle->packed);
	if (explain_place(path, r) < 0)
		return EXIT_FAILURE;
	printf("%s: %zu bytes, readable for its owner only\n", path, bundle->packed.len);
	return EXIT_SUCCESS;
}

int bundle_write(const struct doctor *doctor, const char *text, const char *json)
{
	const struct bundle_source source = { doctor, text, json,
					      clock_boot_ns() + BUNDLE_SECONDS * NSEC_PER_SEC };
	const struct invocation *inv = doctor->invocation;
	_cleanup_free_ struct bundle *bundle = calloc(1, sizeof(*bundle));
	int status = EXIT_FAILURE;

	if (!bundle || redactor_new(inv->flag[FLAG_WITH_NAMES], &bundle->redactor) < 0) {
		fprintf(stderr, "gpusonde doctor: out of memory\n");
		return EXIT_FAILURE;
	}
	strbuf_init(&bundle->contents, 0);
	strbuf_init(&bundle->tar, 0);
	strbuf_init(&bundle->packed, 0);
	for (unsigned i = 0; i < ITEMS; i++) {
		bundle->items[i] = (struct bundle_item){ .name = table[i].name,
							 .help = table[i].help,
							 .form = table[i].form };
		strbuf_init(&bundle->items[i].text, BUNDLE_ITEM_MAX);
	}
	redactor_secret_files(bundle->redactor, &inv->options);
	make_items(bundle, &source);
	for (unsigned i = 0; i < ITEMS; i++)
		redact_item(bundle->redactor, &bundle->items[i]);
	status = list_and_write(bundle, inv);
	for (unsigned i = 0; i < ITEMS; i++) {
		strbuf_done(&bundle->items[i].text);
		json_decref(bundle->items[i].json);
	}
	strbuf_done(&bundle->contents);
	strbuf_done(&bundle->tar);
	strbuf_done(&bundle->packed);
	redactor_free(bundle->redactor);
	return status;
}
