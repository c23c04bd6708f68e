// SPDX-License-Identifier: Apache-2.0
#include "cubin/name.h"

#include <libiberty/demangle.h>
#undef ARRAY_SIZE /* libiberty.h has its own */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

enum {
	OPTIONS = DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE, /* c++filt's */
	DEPTH_MAX = 1000, /* of the tree */
	/*
	 * What printing may take: a component, or 16 characters of a name, each. 40 ms; names of PyTorch's
	 * kernels have up to 4 million.
	 */
	WEIGHT_MAX = 5 << 20,
	SCOPES_MAX = 1 << 15, /* templates times references to parameters of templates */
	CONVERSIONS_MAX = 10,
};

/*
 * libiberty's tree shares components that are referred to again (S_, T_), and prints them at each reference:
 * 300 bytes can expand to gigabytes, and packs of arguments can take hours without any output. So the cost of
 * printing is computed first, visiting each component once.
 */
struct weight {
	bool known;
	uint16_t list; /* arguments, of a list of them */
	uint16_t packs; /* pack expansions in one another */
	uint32_t prints; /* components that are printed, were each pack one argument */
	uint32_t parameters; /* T_ among them, each of which prints an argument */
};

struct weighing {
	const char *components; /* all of them, one after the other */
	size_t components_n;
	struct weight *weights; /* of these */
	struct weight heaviest; /* largest argument list that a T_ can refer to */
	struct weight any; /* list of arguments */
	bool conversion; /* its T_ may refer to the arguments of any template */
	uint32_t longest; /* list of arguments */
	uint32_t encodings; /* with arguments of their own: a T_ in an argument leads to the next */
	uint32_t templates, references;
};

static uint32_t add_saturated(uint32_t a, uint32_t b)
{
	return MIN(a + b, (uint32_t)WEIGHT_MAX);
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
	return (uint32_t)MIN((uint64_t)a * b, (uint64_t)WEIGHT_MAX);
}

/* The parts of a component. Numbers and texts have none; types not listed have up to two. */
static void parts_of(const struct demangle_component *c, const struct demangle_component *ret[static 2])
{
	ret[0] = ret[1] = NULL;
	switch (c->type) {
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER:
		return;
	case DEMANGLE_COMPONENT_CTOR:
		ret[0] = c->u.s_ctor.name;
		return;
	case DEMANGLE_COMPONENT_DTOR:
		ret[0] = c->u.s_dtor.name;
		return;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		ret[0] = c->u.s_extended_operator.name;
		return;
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		ret[0] = c->u.s_fixed.length;
		return;
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		ret[0] = c->u.s_unary_num.sub;
		return;
	default:
		ret[0] = c->u.s_binary.left;
		ret[1] = c->u.s_binary.right;
	}
}

/* The component's weight; NULL: not in the tree, e.g. a type that only a newer libiberty has. */
static struct weight *weight_of(const struct weighing *w, const struct demangle_component *c)
{
	uintptr_t offset = (uintptr_t)c - (uintptr_t)w->components;

	if (offset % sizeof(*c) || offset / sizeof(*c) >= w->components_n)
		return NULL;
	return &w->weights[offset / sizeof(*c)];
}

static void take_heavier(struct weight *most, const struct weight *list)
{
	most->prints = MAX(most->prints, list->prints);
	most->parameters = MAX(most->parameters, list->parameters);
	most->packs = MAX(most->packs, list->packs);
}

/*
 * The template whose arguments T_ refers to in a function's type and in its local names, determined as in
 * libiberty.
 */
static const struct demangle_component *template_of(const struct demangle_component *function)
{
	const struct demangle_component *c = function->u.s_binary.left;

	for (unsigned i = 0; c && i < DEPTH_MAX; i++) {
		switch (c->type) {
		case DEMANGLE_COMPONENT_TEMPLATE:
			return c;
		case DEMANGLE_COMPONENT_LOCAL_NAME:
			c = c->u.s_binary.right;
			break;
		case DEMANGLE_COMPONENT_DEFAULT_ARG:
			c = c->u.s_unary_num.sub;
			break;
		case DEMANGLE_COMPONENT_RESTRICT_THIS:
		case DEMANGLE_COMPONENT_VOLATILE_THIS:
		case DEMANGLE_COMPONENT_CONST_THIS:
		case DEMANGLE_COMPONENT_REFERENCE_THIS:
		case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
		case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
		case DEMANGLE_COMPONENT_NOEXCEPT:
		case DEMANGLE_COMPONENT_THROW_SPEC:
			c = c->u.s_binary.left;
			break;
		default:
			return NULL;
		}
	}
	return NULL;
}

/* @c's parts have been weighed. */
static void note(struct weighing *w, const struct demangle_component *c, const struct weight *self)
{
	const struct demangle_component *part = NULL;
	const struct weight *list;

	switch (c->type) {
	case DEMANGLE_COMPONENT_TEMPLATE:
		w->templates++;
		list = weight_of(w, c->u.s_binary.right);
		if (list)
			take_heavier(&w->any, list);
		return;
	case DEMANGLE_COMPONENT_TEMPLATE_ARGLIST:
		w->longest = MAX(w->longest, (uint32_t)self->list);
		return;
	case DEMANGLE_COMPONENT_CONVERSION:
		w->conversion = true;
		w->encodings++;
		return;
	case DEMANGLE_COMPONENT_TYPED_NAME:
		part = template_of(c);
		list = part ? weight_of(w, part->u.s_binary.right) : NULL;
		if (list)
			take_heavier(&w->heaviest, list);
		w->encodings += part != NULL;
		return;
	case DEMANGLE_COMPONENT_REFERENCE:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
		part = c->u.s_binary.left;
		w->references += part && part->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
		return;
	default:
		return;
	}
}

static bool weigh(struct weighing *w, const struct demangle_component *c, unsigned depth,
		  struct weight *ret_weight)
{
	struct weight *self = weight_of(w, c), total = { .known = true, .prints = 1 };
	const struct demangle_component *parts[2];

	if (!self || depth > DEPTH_MAX)
		return false;
	if (self->known) {
		*ret_weight = *self;
		return true;
	}
	if (c->type == DEMANGLE_COMPONENT_NAME)
		total.prints += (uint32_t)MAX(c->u.s_name.len, 0) / 16;
	total.parameters = c->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
	parts_of(c, parts);
	for (unsigned i = 0; i < 2; i++) {
		struct weight part;

		if (!parts[i])
			continue;
		if (!weigh(w, parts[i], depth + 1, &part))
			return false;
		total.prints = add_saturated(total.prints, part.prints);
		total.parameters = add_saturated(total.parameters, part.parameters);
		total.packs = MAX(total.packs, part.packs);
		total.list = part.list;
	}
	total.packs = (uint16_t)(total.packs + (c->type == DEMANGLE_COMPONENT_PACK_EXPANSION));
	total.list = c->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST ? (uint16_t)(total.list + 1) : 0;
	note(w, c, &total);
	*ret_weight = *self = total;
	return true;
}

static uint32_t expanded(uint32_t n, uint32_t packs, uint32_t longest)
{
	while (packs-- > 0 && n < WEIGHT_MAX)
		n = multiply(n, MAX(longest, 1u));
	return n;
}

/* Upper bounds: each T_ prints the heaviest list, each T_ in that one the next encoding's, and so on. */
static bool is_light(struct weighing *w, const struct weight *all)
{
	uint32_t prints = expanded(all->prints, all->packs, w->longest), level, inner;

	if (w->conversion)
		take_heavier(&w->heaviest, &w->any);
	level = expanded(all->parameters, all->packs, w->longest);
	inner = expanded(w->heaviest.parameters, w->heaviest.packs, w->longest);
	for (uint32_t i = 0; i < w->encodings && level && prints < WEIGHT_MAX; i++) {
		prints = add_saturated(
			prints, multiply(level, expanded(w->heaviest.prints, w->heaviest.packs, w->longest)));
		level = multiply(level, inner);
	}
	/* The stack of d_print_callback() holds a copy of each template for each such reference. */
	return prints < WEIGHT_MAX && (uint64_t)w->templates * w->references <= SCOPES_MAX;
}

/*
 * The type of a conversion operator is parsed twice wherever "T_I" is in it, and so is what is in that:
 * "cvT_IT_IT_I..." of 110 characters takes a second.
 */
static bool parses_quickly(const char *symbol)
{
	unsigned n = 0;

	if (!strstr(symbol, "cv"))
		return true;
	for (const char *p = strchr(symbol, 'T'); p; p = strchr(p, 'T')) {
		p++;
		p += strspn(p, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		n += p[0] == '_' && p[1] == 'I';
	}
	return n <= CONVERSIONS_MAX;
}

struct output {
	char *buf;
	size_t size, n;
};

static void take_text(const char *text, size_t n, void *userdata)
{
	struct output *out = userdata;

	n = MIN(n, out->size - 1 - out->n);
	memcpy(out->buf + out->n, text, n);
	out->n += n;
}

static bool print(const struct demangle_component *root, void *components, size_t components_n,
		  struct output *out)
{
	struct weighing w = { .components = components, .components_n = components_n };
	struct weight all;
	bool light;

	w.weights = calloc(components_n, sizeof(*w.weights));
	light = w.weights && weigh(&w, root, 0, &all) && is_light(&w, &all);
	free(w.weights);
	return light &&
	       cplus_demangle_print_callback(OPTIONS, (struct demangle_component *)(uintptr_t)root, take_text,
					     out) &&
	       out->n > 0;
}

static bool demangle(const char *symbol, struct output *out)
{
	size_t n = strnlen(symbol, KERNEL_NAME_MAX + 1);
	const struct demangle_component *root;
	void *components = NULL;
	bool done;

	if (strncmp(symbol, "_Z", 2) != 0 || n > KERNEL_NAME_MAX || !parses_quickly(symbol))
		return false;
	/*
	 * Without DMGL_NO_RECURSE_LIMIT: what recurses most is limited there; for the rest KERNEL_NAME_MAX
	 * is.
	 */
	root = cplus_demangle_v3_components(symbol, OPTIONS, &components);
	/* libiberty needs two components per character. */
	done = root && print(root, components, 2 * n, out);
	free(components);
	return done;
}

static void make_printable(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	utf8_sanitize(text);
}

/*
 * Static functions of relocatable device code: nvcc puts "__nv_static_N_", N bytes that stand for the source
 * file, and "_" before their names.
 */
static const char *without_file(const char *symbol)
{
	static const char prefix[] = "__nv_static_";
	const char *p = symbol + strlen(prefix);
	unsigned n = 0;

	if (strncmp(symbol, prefix, strlen(prefix)) != 0)
		return symbol;
	for (; *p >= '0' && *p <= '9' && n < KERNEL_NAME_MAX; p++)
		n = n * 10 + (unsigned)(*p - '0');
	if (n == 0 || *p != '_' || strnlen(p + 1, n) < n || p[n + 1] != '_' || p[n + 2] == '\0')
		return symbol;
	return p + n + 2;
}

bool kernel_name_demangle(const char *symbol, char *buf, size_t size)
{
	struct output out = { .buf = buf, .size = size };
	bool done;

	if (size == 0)
		return false;
	symbol = without_file(symbol);
	done = demangle(symbol, &out);
	if (!done) {
		out.n = strnlen(symbol, size - 1);
		memcpy(buf, symbol, out.n);
	}
	buf[out.n] = '\0';
	make_printable(buf);
	return done;
}

/* A demangled name, read from left to right: which brackets are open. */
struct scan {
	const char *from, *p;
	unsigned depth;
	bool lost; /* too many */
	char open[256];
};

static bool is_word(char c)
{
	unsigned char letter = (unsigned char)c | 0x20;

	return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static void open_bracket(struct scan *s)
{
	s->lost |= s->depth == sizeof(s->open);
	if (!s->lost)
		s->open[s->depth++] = *s->p;
	s->p++;
}

/*
 * '>' may also be an operator, between parentheses: then no '<' is open there. Brackets left open are closed
 * with those around them.
 */
static void close_bracket(struct scan *s, char opened)
{
	unsigned depth = s->depth;

	s->p++;
	if (opened == '<') {
		s->depth -= depth > 0 && s->open[depth - 1] == '<';
		return;
	}
	while (depth > 0 && s->open[depth - 1] != opened)
		depth--;
	if (depth > 0)
		s->depth = depth - 1;
}

/* Past "operator<", "operator()", "operator int*": no brackets. */
static bool scan_operator(struct scan *s)
{
	static const char *const symbols[] = {
		/* the longer first */
		"()", "[]", "\"\"", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&",
		"||", "++", "--",   "+=",  "-=",  "*=",  "/=",  "%=", "^=", "&=", "|=", "->", "<",  ">"
	};

	if (strncmp(s->p, "operator", 8) != 0 || (s->p > s->from && is_word(s->p[-1])) || is_word(s->p[8]))
		return false;
	s->p += 8;
	if (*s->p == ' ' && s->depth == 0) {
		s->p += strcspn(s->p, "(<"); /* operator new, delete, or a type */
		return true;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (strncmp(s->p, symbols[i], strlen(symbols[i])) == 0) {
			s->p += strlen(symbols[i]);
			break;
		}
	}
	s->p += strncmp(s->p, " <", 2) == 0; /* "operator< <int>" */
	return true;
}

/* One thing that is to be read as a whole. */
static void scan_next(struct scan *s)
{
	static const char anonymous[] = "(anonymous namespace)";

	switch (*s->p) {
	case '(':
		if (strncmp(s->p, anonymous, sizeof(anonymous) - 1) == 0) {
			s->p += sizeof(anonymous) - 1;
			return;
		}
		open_bracket(s);
		return;
	case '<':
	case '[':
	case '{':
		open_bracket(s);
		return;
	case '>':
		close_bracket(s, '<');
		return;
	case ')':
		close_bracket(s, '(');
		return;
	case ']':
		close_bracket(s, '[');
		return;
	case '}':
		close_bracket(s, '{');
		return;
	case 'o':
		if (scan_operator(s))
			return;
		/* fall through */
	default:
		/* Most of a name is words. */
		do
			s->p++;
		while (is_word(*s->p) && *s->p != 'o');
	}
}

/* The last part of a name outside of all brackets, and the one before it. */
struct part {
	const char *start, *end; /* end NULL: not yet */
	const char *before; /* NULL: there is none */
};

/* False: the name has no further part. */
static bool part_next(struct scan *s, struct part *part)
{
	const char *at = s->p;
	bool outside = s->depth == 0;

	if (*at == '\0' || s->lost)
		return false;
	if (outside && *at == ' ') {
		/* After the parameters: "const", "[clone]". Else what was before it is the return type. */
		if (part->end || at[1] == '[')
			return false;
		*part = (struct part){ .start = at + 1 };
	} else if (outside && strncmp(at, "::", 2) == 0) {
		s->p++;
		*part = (struct part){ .start = at + 2, .before = part->start };
	}
	scan_next(s);
	/*
	 * At the start of a part parentheses do not enclose parameters: "decltype (...)", "void
	 * (*f(int))(int)".
	 */
	if (outside && *at == '(' && s->depth > 0 && at > part->start && !part->end)
		part->end = at;
	return true;
}

static void output_put(struct output *out, const char *text, size_t n)
{
	take_text(text, n, out);
}

/* Copies a part of a name, arguments of templates folded. */
static void fold(const char *start, const char *end, struct output *out)
{
	struct scan s = { .from = start, .p = start };

	while (s.p < end && !s.lost) {
		const char *at = s.p;
		bool template = *at == '<' && s.depth == 0;

		scan_next(&s);
		if (template) {
			while (s.p < end && s.depth > 0 && !s.lost)
				scan_next(&s);
			output_put(out, "<...>", 5);
		} else {
			output_put(out, at, (size_t)(MIN(s.p, end) - at));
		}
	}
}

void kernel_name_brief(const char *name, char *buf, size_t size)
{
	struct scan s = { .from = name, .p = name };
	struct part part = { .start = name };
	struct output out = { .buf = buf, .size = size };

	if (size == 0)
		return;
	while (part_next(&s, &part))
		;
	if (!part.end)
		part.end = s.p;
	/* A lambda's or functor's operator() is meaningless without the enclosing name. */
	if (part.before && strncmp(part.start, "operator()", 10) == 0)
		part.start = part.before;
	if (!s.lost && part.end > part.start)
		fold(part.start, part.end, &out);
	else
		output_put(&out, name, strlen(name));
	buf[out.n] = '\0';
	utf8_sanitize(buf);
}
