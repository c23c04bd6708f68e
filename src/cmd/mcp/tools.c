// SPDX-License-Identifier: Apache-2.0
/* Tools: commands of ours, their arguments from the table of flags. */
#include "cmd/mcp/mcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/flag_words.h"
#include "helper/run.h"
#include "view/number.h"

enum {
	FLAGS_MAX = 12,
	RUN_SECONDS = 120, /* a report of a year's recording takes longest */
	ANSWER_MAX = 1 << 20,
	ARGUMENT_MAX = 4096,
};

static const struct tool {
	const char *name, *command, *always, *operand;
	enum flag_id flags[FLAGS_MAX]; /* ends with FLAG_HELP, which is 0 */
	const char *title, *description;
} tools[] = {
#define TOOL(name_, command_, always_, operand_, flags_, title_, description_) \
	{ name_, command_, always_, operand_, flags_, title_, description_ },
#include "cmd/mcp/tools.def"
};

/* What the answers of a tool are: JSON schemas, made of that of our documents (outputs.py). */
static const struct {
	const char *tool, *schema;
} outputs[] = {
#define OUTPUT(tool_, schema_) { tool_, schema_ },
#include "cmd/mcp_outputs.inc"
};
_Static_assert(ARRAY_SIZE(outputs) == ARRAY_SIZE(tools), "each tool has one");

/* What the argument is that becomes the operand. */
static const struct {
	const char *name, *kind, *description;
} operands[] = {
	{ "file", "a path", "Path of the file to read." },
	{ "about", "a text",
	  "A GPU's index or UUID, a PID, or a batch job's ID; also gpu:0, pid:4711, job:4711. "
	  "Without it: all GPUs." },
};

/* "--since" is the argument "since". */
static const char *argument_name(enum flag_id id)
{
	return flag_table[id].name + 2;
}

/* ---- the list ---- */

static json_t *flag_schema(const struct flag *flag)
{
	json_t *schema = json_pack("{s:s, s:s}", "type", flag->value ? "string" : "boolean", "description",
				   flag->help);
	char *save = NULL;
	struct strbuf words;

	strbuf_init(&words, 0);
	if (flag->value)
		flag_words(flag->value, &words);
	if (words.len > 0) {
		json_t *list = json_array();

		for (char *word = strtok_r(words.data, " ", &save); word; word = strtok_r(NULL, " ", &save))
			json_array_append_new(list, json_string(word));
		json_object_set_new(schema, "enum", list);
	}
	strbuf_done(&words);
	return schema;
}

/* The row of operands of a tool that has one. */
static unsigned operand_of(const struct tool *tool)
{
	unsigned i = 0;

	while (i + 1 < ARRAY_SIZE(operands) &&
	       strncmp(operands[i].name, tool->operand, strcspn(tool->operand, "!")) != 0)
		i++;
	return i;
}

static json_t *input_schema(const struct tool *tool)
{
	json_t *properties = json_object(), *required = json_array();

	for (unsigned i = 0; i < FLAGS_MAX && tool->flags[i] != FLAG_HELP; i++)
		json_object_set_new(properties, argument_name(tool->flags[i]),
				    flag_schema(&flag_table[tool->flags[i]]));
	if (tool->operand) {
		unsigned i = operand_of(tool);

		json_object_set_new(properties, operands[i].name,
				    json_pack("{s:s, s:s}", "type", "string", "description",
					      operands[i].description));
		if (strchr(tool->operand, '!'))
			json_array_append_new(required, json_string(operands[i].name));
	}
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
			 required, "additionalProperties", 0);
}

static json_t *output_schema(const struct tool *tool)
{
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		if (STRV_EQ(outputs[i].tool, tool->name))
			return json_loads(outputs[i].schema, 0, NULL);
	return NULL;
}

json_t *mcp_tools(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		json_t *tool =
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:b, s:b}}", "name", tools[i].name, "title",
				  tools[i].title, "description", tools[i].description, "inputSchema",
				  input_schema(&tools[i]), "outputSchema", output_schema(&tools[i]),
				  "annotations", "readOnlyHint", 1, "openWorldHint", 0);

		if (json_array_append_new(list, tool) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- a call ---- */

/* The command line of a call: its words, and what they are of. */
struct call {
	const struct tool *tool;
	unsigned n;
	char *words[FLAGS_MAX + 7];
	char why[200]; /* it was refused */
};

static bool add_word(struct call *call, const char *word)
{
	call->words[call->n] = strdup(word);
	return call->words[call->n++];
}

static const struct flag *flag_of(const struct tool *tool, const char *argument)
{
	for (unsigned i = 0; i < FLAGS_MAX && tool->flags[i] != FLAG_HELP; i++)
		if (STRV_EQ(argument_name(tool->flags[i]), argument))
			return &flag_table[tool->flags[i]];
	return NULL;
}

static bool is_operand(const struct tool *tool, const char *argument)
{
	size_t n = tool->operand ? strcspn(tool->operand, "!") : 0;

	return n > 0 && strlen(argument) == n && strncmp(tool->operand, argument, n) == 0;
}

/* A text or a number; a value cannot be taken for a flag, since it stands behind "=". */
static int value_text(const json_t *value, struct strbuf *out)
{
	if (json_is_string(value))
		strbuf_adds(out, json_string_value(value));
	else if (json_is_number(value))
		number_add(out, json_number_value(value));
	else
		return -EINVAL;
	return out->failed ? -ENOMEM : strlen(out->data ? out->data : "") > ARGUMENT_MAX ? -EINVAL : 0;
}

static int add_argument(struct call *call, const char *name, const json_t *value)
{
	const struct flag *flag = flag_of(call->tool, name);
	struct strbuf word;
	int r = 0;

	if (json_is_null(value) || is_operand(call->tool, name))
		return 0;
	if (!flag) {
		snprintf(call->why, sizeof(call->why), "%s has no argument \"%.60s\"", call->tool->name,
			 name);
		return -EINVAL;
	}
	strbuf_init(&word, 0);
	strbuf_adds(&word, flag->name);
	if (flag->value) {
		strbuf_addc(&word, '=');
		r = value_text(value, &word);
	} else if (!json_is_boolean(value)) {
		r = -EINVAL;
	}
	if (r == -EINVAL)
		snprintf(call->why, sizeof(call->why), "the argument %.60s must be %s", name,
			 flag->value ? "a text" : "true or false");
	else if (flag->value || json_is_true(value))
		r = r == 0 && add_word(call, word.data) ? 0 : -ENOMEM;
	strbuf_done(&word);
	return r;
}

/* One that begins with a dash is neither a flag nor, as "--" would make it for analyze, a program to run. */
static int add_path(struct call *call, const char *path)
{
	char word[ARGUMENT_MAX + 3];

	snprintf(word, sizeof(word), "%s%s", *path == '-' ? "./" : "", path);
	return add_word(call, word) ? 0 : -ENOMEM;
}

/* One that is there is never left out: the command would answer of another file. */
static int add_operand(struct call *call, const json_t *arguments)
{
	const json_t *operand = NULL;
	const char *path, *key;
	json_t *value;

	json_object_foreach((json_t *)arguments, key, value)
		if (is_operand(call->tool, key) && !json_is_null(value))
			operand = value;
	path = json_string_value(operand);
	if (path && *path && strlen(path) <= ARGUMENT_MAX)
		return add_path(call, path);
	if (!operand && (!call->tool->operand || !strchr(call->tool->operand, '!')))
		return 0;
	snprintf(call->why, sizeof(call->why), "the argument %s %s %s", operands[operand_of(call->tool)].name,
		 operand ? "must be" : "is needed:", operands[operand_of(call->tool)].kind);
	return -EINVAL;
}

static int make_command(struct call *call, const json_t *arguments)
{
	const char *key;
	json_t *value;
	int r = 0;

	if (!add_word(call, "gpusonde") || !add_word(call, call->tool->command) || !add_word(call, "--json"))
		return -ENOMEM;
	if (call->tool->always && !add_word(call, call->tool->always))
		return -ENOMEM;
	json_object_foreach((json_t *)arguments, key, value)
		r = r == 0 ? add_argument(call, key, value) : r;
	return r == 0 ? add_operand(call, arguments) : r;
}

static json_t *result(const char *text, bool error)
{
	return json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text", text, "isError",
			 (int)error);
}

/* A command that finds fault exits with 1 and still says what it found. */
static json_t *run_result(int status, const struct strbuf *output, const struct strbuf *errors)
{
	json_t *document = output->len > 0 ? json_loadb(output->data, output->len, 0, NULL) : NULL, *r;
	char text[120];

	if (status == -E2BIG) {
		snprintf(text, sizeof(text),
			 "the answer has more than %d bytes: ask for less, by columns, filter or time",
			 ANSWER_MAX);
		return result(text, true);
	}
	if (status < 0 || !json_is_object(document)) {
		json_decref(document);
		snprintf(text, sizeof(text), "the command failed: %s",
			 status == -ETIMEDOUT ? "it took too long" :
			 status < 0           ? strerror(-status) :
						"it says nothing");
		return result(errors->len > 0 ? errors->data : text, true);
	}
	r = result(output->data, false);
	if (r && json_object_set_new(r, "structuredContent", document) < 0) {
		json_decref(r);
		return NULL;
	}
	return r;
}

static json_t *run_call(struct call *call)
{
	const struct run run = {
		.arguments = call->words,
		.seconds = RUN_SECONDS,
		.limit = ANSWER_MAX,
	};
	struct strbuf output, errors;
	int status;
	json_t *r;

	strbuf_init(&output, 0);
	strbuf_init(&errors, 0);
	status = run_program(&run, &output, &errors);
	if (output.data)
		utf8_sanitize(output.data);
	if (errors.data)
		utf8_sanitize(errors.data);
	r = run_result(status, &output, &errors);
	strbuf_done(&output);
	strbuf_done(&errors);
	return r;
}

json_t *mcp_tool_call(const char *name, const json_t *arguments)
{
	struct call call = { 0 };
	json_t *answer = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (STRV_EQ(tools[i].name, name))
			call.tool = &tools[i];
	if (!call.tool)
		return NULL;
	r = make_command(&call, arguments);
	utf8_sanitize(call.why); /* a name may be cut within a character */
	if (r == -EINVAL)
		answer = result(call.why, true);
	else if (r == 0)
		answer = run_call(&call);
	for (unsigned i = 0; i < call.n; i++)
		free(call.words[i]);
	return answer;
}
