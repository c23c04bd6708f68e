// SPDX-License-Identifier: Apache-2.0
#include "trace/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* ---- names as C++ has them (the Itanium ABI): a length, and as many characters ---- */

/* After @begin; NULL: the symbol begins otherwise. */
static const char *after(const char *symbol, const char *begin)
{
	size_t n = strlen(begin);

	return strncmp(symbol, begin, n) == 0 ? symbol + n : NULL;
}

/* Takes a name. Returns what comes after it; NULL: there is none. */
static const char *take_name(const char *at, const char **ret_name, size_t *ret_n)
{
	char *name;
	unsigned long n;

	if (!at || *at < '1' || *at > '9')
		return NULL;
	n = strtoul(at, &name, 10);
	if (n >= USER_SYMBOL_MAX || strnlen(name, n) < n)
		return NULL;
	*ret_name = name;
	*ret_n = n;
	return name + n;
}

static bool is_operator(const char *symbol)
{
	const char *name, *at;
	size_t n;

	at = take_name(after(symbol, "_ZN2at4_ops"), &name, &n);
	return at && after(at, "4callE") && !strchr(at, '.');
}

static bool is_backward(const char *symbol)
{
	/* Static or not, and of whichever namespace. */
	const char *at = after(symbol, "_Z") ? strstr(symbol, "22THPEngine_run_backward") : NULL;

	return at && STRV_EQ(at, "22THPEngine_run_backwardP7_objectS0_S0_");
}

static bool is_node(const char *symbol)
{
	static const char begin[] = "_ZN5torch8autograd6Engine17evaluate_functionE"
				    "RSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeE";
	const char *at = after(symbol, begin);

	return at && !strchr(at, '.');
}

static bool is_edge(const char *symbol)
{
	const char *at = after(symbol, "_ZN5torch8autograd4impl17set_gradient_edgeERKN2at");

	return at && (STRV_EQ(at, "6TensorENS0_4EdgeE") || STRV_EQ(at, "10TensorBaseENS0_4EdgeE"));
}

/* Bytes are signed, then two numbers: of type long in older versions, size_t later. */
static bool is_memory(const char *symbol)
{
	const char *at = after(symbol, "_ZN3c1027reportMemoryUsageToProfilerEPv");

	return at && (STRV_EQ(at, "lllNS_6DeviceE") || STRV_EQ(at, "lmmNS_6DeviceE"));
}

static bool is_oom(const char *symbol)
{
	const char *at = after(symbol, "_ZN3c1027reportOutOfMemoryToProfilerE");

	return at && (STRV_EQ(at, "lllNS_6DeviceE") || STRV_EQ(at, "lmmNS_6DeviceE"));
}

/* The first argument is a std::string, of either ABI; what is returned takes an address before it. */
static bool is_range(const char *symbol)
{
	static const char *const arguments[] = {
		"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKN3c108optionalIS7_EE",
		"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt8optionalIS7_E",
		"SsRKN3c108optionalISsEE",
		"SsRKSt8optionalISsE",
	};
	const char *at = after(symbol, "_ZN5torch8autograd8profiler25record_function_enter_newERK");

	for (size_t i = 0; at && i < ARRAY_SIZE(arguments); i++)
		if (STRV_EQ(at, arguments[i]))
			return true;
	return false;
}

static bool is_bound(const char *name, size_t n)
{
	static const char *const bound[] = {
#define BINDING(name) name,
#include "trace/bindings.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(bound); i++)
		if (strlen(bound[i]) == n && memcmp(bound[i], name, n) == 0)
			return true;
	return false;
}

/* A method without arguments has two parameters. Compilers also make parts of one (.cold). */
static bool is_binding(const char *symbol)
{
	const char *name, *at, *of;
	size_t n;

	at = take_name(after(symbol, "_ZN5torch8autogradL"), &name, &n);
	of = at ? after(name, "THPVariable_") : NULL;
	if (!of || of >= at || !is_bound(of, (size_t)(at - of)))
		return false;
	return STRV_EQ(at, "EP7_objectS2_S2_") || STRV_EQ(at, "EP7_objectS2_");
}

/* ---- CPython ---- */

/* A function, or the part of it that the compiler made of it: "collect.constprop.0", but no ".cold". */
static bool is_part(const char *symbol, const char *name)
{
	const char *at = after(symbol, name);

	return at && *at == '.' && !strstr(at, ".cold");
}

static bool is_python_call(const char *symbol)
{
	return STRV_EQ(symbol, "PyObject_CallFunction");
}

/* 3.10 and later; before, its name was shorter. */
static bool is_gc(const char *symbol)
{
	return STRV_EQ(symbol, "gc_collect_main") || STRV_EQ(symbol, "collect");
}

static bool is_gc_part(const char *symbol)
{
	return is_part(symbol, "gc_collect_main") || is_part(symbol, "collect");
}

static bool is_gc_phase(const char *symbol)
{
	return STRV_EQ(symbol, "invoke_gc_callback") || is_part(symbol, "invoke_gc_callback");
}

#define PATTERN(library_, op_, matches_, ...)                  \
	{                                                      \
		.library = PROBE_##library_,                   \
		.matches = matches_,                           \
		.spec = { .op = TRACE_OP_##op_,                \
			  .flags = TRACE_SPEC_SKIP_BYTES,      \
			  .event_flags = TRACE_FLAG_NO_RESULT, \
			  .result = TRACE_RESULT_NONE,         \
			  ##__VA_ARGS__ },                     \
	},
const struct pattern patterns[] = {
#include "trace/patterns.def"
};
const uint8_t patterns_n = ARRAY_SIZE(patterns);

uint8_t pattern_of(const bool libraries[PROBE_LIBRARIES], const char *symbol)
{
	for (uint8_t i = 0; i < patterns_n; i++)
		if (libraries[patterns[i].library] && patterns[i].matches(symbol))
			return (uint8_t)(i + 1);
	return 0;
}

bool pattern_is_used(const bool libraries[PROBE_LIBRARIES])
{
	for (uint8_t i = 0; i < patterns_n; i++)
		if (libraries[patterns[i].library])
			return true;
	return false;
}
