# SPDX-License-Identifier: Apache-2.0
"""As much of Go's text/template, with the functions that Helm adds, as the chart in deploy/helm uses. What it does not know is an error.

    Templates(text, ...).render(name, data)

Values are what YAML has: None, bool, int, float, str, list, dict. chart_real.py compares it with the real one.
"""
import hashlib
import re

import yaml

ACTION = re.compile(r"\{\{(- )?((?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|/\*.*?\*/|(?!\}\}).)*?)( -)?\}\}", re.S)
TOKEN = re.compile(r"""\s*(?:(?P<string>"(?:\\.|[^"\\])*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?)|(?P<field>\$?\w*(?:\.\w+)+|\.|\$\w*)|(?P<word>\w+)"""
                   r"""|(?P<mark>:=|[=|(),]))""")
PREFIX = "/\\*" # of a comment
OPENING = ("if", "range", "with", "define")


class TemplateError(Exception):
    """The template is wrong, uses what is not known here, or says fail."""


class Stop(Exception):
    """An else or an end: .words are its action's."""

    def __init__(self, words):
        super().__init__(words)
        self.words = words


def pieces(text):
    """Text and actions in turn, with the space that "-" takes away gone."""
    parts, at, trim = [], 0, False
    for found in ACTION.finditer(text):
        before = text[at:found.start()]
        before = before.lstrip() if trim else before
        parts.append(("text", before.rstrip() if found[1] else before))
        parts.append(("action", found[2].strip()))
        at, trim = found.end(), bool(found[3])
    parts.append(("text", text[at:].lstrip() if trim else text[at:]))
    return [(kind, part) for kind, part in parts if part and not (kind == "action" and re.match(PREFIX, part))]


def tokens(text):
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match or match.end() == at:
            raise TemplateError(f"cannot read {text[at:]!r} in {{{{ {text} }}}}")
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def literal(text):
    return text[1:-1] if text.startswith("`") else re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[1:-1])


class Parser:
    """Of one action: a pipeline is a list of calls, a call a list of operands."""

    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else (None, None)

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def pipeline(self):
        calls = [self.call()]
        while self.peek() == ("mark", "|"):
            self.take()
            calls.append(self.call())
        return ("pipeline", calls)

    def call(self):
        operands = []
        while self.peek()[0] and self.peek() not in (("mark", "|"), ("mark", ")")):
            operands.append(self.operand())
        if not operands:
            raise TemplateError(f"an empty command: {self.tokens}")
        return operands

    def operand(self):
        kind, text = self.take()
        if (kind, text) == ("mark", "("):
            inner = self.pipeline()
            if self.take() != ("mark", ")"):
                raise TemplateError("a ) is missing")
            return inner
        if kind == "string":
            return ("value", literal(text))
        if kind == "number":
            return ("value", float(text) if "." in text else int(text))
        if kind == "word" and text in ("true", "false", "nil"):
            return ("value", {"true": True, "false": False, "nil": None}[text])
        if kind in ("field", "word"):
            return (kind, text)
        raise TemplateError(f"unexpected {text!r}")

    def variables(self):
        """(names, operator) before a pipeline, or ([], None)."""
        names, start = [], self.at
        while self.peek()[0] == "field" and self.peek()[1].startswith("$"):
            names.append(self.take()[1])
            if self.peek() == ("mark", ","):
                self.take()
        if names and self.peek() in (("mark", ":="), ("mark", "=")):
            return names, self.take()[1]
        self.at = start
        return [], None


def is_true(value):
    return bool(value)


def shown(value):
    """As Go prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def quoted(value):
    return '"' + shown(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def indent(n, text):
    return "\n".join(" " * n + line for line in text.split("\n"))


def fail(text):
    raise TemplateError(text)


def version(text):
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(n) for n in found.groups())


def semver_compare(constraint, text):
    operator, bound = re.match(r"(<|>=)(.*)", constraint).groups()
    return version(text) < version(bound) if operator == "<" else version(text) >= version(bound)


FUNCTIONS = {
    "default": lambda fallback, value=None: value if is_true(value) else fallback,
    "eq": lambda a, *others: any(a == b for b in others),
    "fail": fail,
    "indent": indent,
    "join": lambda separator, items: separator.join(map(shown, items)),
    "ne": lambda a, b: a != b,
    "nindent": lambda n, text: "\n" + indent(n, text),
    "not": lambda a: not is_true(a),
    "printf": lambda form, *args: form.replace("%s", "{}").format(*map(shown, args)),
    "quote": quoted,
    "required": lambda text, value: value if is_true(value) else fail(text),
    "semverCompare": semver_compare,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False, width=1 << 20).removesuffix("\n").removesuffix("\n..."),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda n, text: text[:n],
}


class Scope:
    def __init__(self, dot, variables):
        self.dot, self.variables = dot, variables

    def inner(self, dot):
        return Scope(dot, [*self.variables, {}])

    def declare(self, name, value):
        self.variables[-1][name] = value

    def assign(self, name, value):
        next(v for v in reversed(self.variables) if name in v)[name] = value

    def find(self, path):
        if path == ".":
            return self.dot
        first, *rest = path.split(".")
        value = next((v[first] for v in reversed(self.variables) if first in v), self) if first else self.dot
        if value is self:
            raise TemplateError(f"undefined variable {first}")
        for name in rest:
            if value is None:
                raise TemplateError(f"nil has no {name}: {path}")
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
        return value


class Templates:
    """All files of a chart: what one defines the others include."""

    def __init__(self, **files):
        self.defined = {}
        for name, text in files.items():
            parts = iter(pieces(text))
            try:
                self.defined[name] = self.block(parts)
            except Stop as why:
                raise TemplateError(f"{name}: {why.words} too many") from None

    # ---- from text to nodes ----

    def block(self, parts):
        """Nodes up to the end, which raises Stop with .nodes."""
        nodes = []
        for kind, text in parts:
            if kind == "text":
                nodes.append(("text", text))
                continue
            word = re.match(r"\w*", text)[0]
            if word in ("end", "else"):
                stop = Stop(text)
                stop.nodes = nodes
                raise stop
            if word == "define":
                self.defined[literal(text.split(None, 1)[1])] = self.body(parts)[0]
            elif word in OPENING:
                nodes.append(self.branch(word, text[len(word):], parts))
            else:
                nodes.append(("print", text))
        return nodes

    def body(self, parts):
        try:
            self.block(parts)
        except Stop as stop:
            return stop.nodes, stop.words
        raise TemplateError("an end is missing")

    def branch(self, word, text, parts):
        nodes, closing = self.body(parts)
        otherwise = []
        if closing.startswith("else if"):
            otherwise = [self.branch("if", closing.removeprefix("else if"), parts)]
        elif closing == "else":
            otherwise, closing = self.body(parts)
        return (word, text, nodes, otherwise)

    # ---- from nodes to text ----

    def render(self, name, data):
        return self.run(self.defined[name], Scope(data, [{"$": data}]))

    def run(self, nodes, scope):
        return "".join(text if kind == "text" else self.one(kind, text, rest, scope) for kind, text, *rest in nodes)

    def one(self, kind, text, rest, scope):
        parser = Parser(text)
        names, operator = parser.variables()
        value = self.value(parser.pipeline(), scope)
        if parser.peek()[0]:
            raise TemplateError(f"too much in {{{{ {text} }}}}")
        if kind == "print":
            if not names:
                return shown(value)
            (scope.declare if operator == ":=" else scope.assign)(names[0], value)
            return ""
        nodes, otherwise = rest
        if not is_true(value):
            return self.run(otherwise, scope.inner(scope.dot))
        if kind == "range":
            return self.loop(nodes, names, value, scope)
        inner = scope.inner(value if kind == "with" else scope.dot)
        for name in names:
            inner.declare(name, value)
        return self.run(nodes, inner)

    def loop(self, nodes, names, value, scope):
        pairs = sorted(value.items()) if isinstance(value, dict) else enumerate(value)
        out = []
        for key, item in pairs:
            inner = scope.inner(item)
            for name, of in zip(names, (key, item) if len(names) == 2 else (item,)):
                inner.declare(name, of)
            out.append(self.run(nodes, inner))
        return "".join(out)

    def value(self, node, scope):
        kind, content = node
        if kind == "value":
            return content
        if kind == "field":
            return scope.find(content)
        if kind == "word":
            return self.call(content, [], scope)
        result, first = None, True
        for operands in content:
            result, first = self.command(operands, [] if first else [result], scope), False
        return result

    def command(self, operands, piped, scope):
        (kind, name), *arguments = operands
        if kind == "word":
            return self.call(name, [*arguments, *[("value", p) for p in piped]], scope)
        target = self.value(operands[0], scope)
        if callable(target):
            return target(*[self.value(a, scope) for a in arguments], *piped)
        if arguments or piped:
            raise TemplateError(f"{name} is no function")
        return target

    def call(self, name, arguments, scope):
        if name in ("and", "or"):
            value = None
            for argument in arguments:
                value = self.value(argument, scope)
                if is_true(value) == (name == "or"):
                    break
            return value
        values = [self.value(a, scope) for a in arguments]
        if name == "include":
            return self.render(values[0], values[1])
        if name not in FUNCTIONS:
            raise TemplateError(f"no function {name}")
        return FUNCTIONS[name](*values)
