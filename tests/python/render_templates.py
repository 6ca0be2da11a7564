"""Renders chat templates the way `transformers` does and prints one JSON line a render.

usage: render_templates.py PROBES.json TEMPLATE...

PROBES.json is a list of {"name", "variables"}; each template is rendered with each probe. A line is
{"template", "probe", "text"} or {"template", "probe", "error", "raised"}; `raised` says whether the
template itself refused with raise_exception.

A file whose name ends in .json holds small templates instead: {"variables", "snippets": [{"source"}]},
each rendered with those variables; `probe` is then its index.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

# The moment that strftime_now reads; tests/template_parity.rs has the same.
NOW = datetime.datetime(2026, 2, 3, 4, 5, 6)


class Raised(jinja2.exceptions.TemplateError):
    """The template called raise_exception."""


class Generation(jinja2.ext.Extension):
    """{% generation %}: its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return env


def compiled(env, source):
    """The template, or what Python says against it."""
    try:
        return env.from_string(source)
    except Exception as error:
        return error


def render(template, variables):
    try:
        if isinstance(template, Exception):
            raise template
        return {"text": template.render(**variables)}
    except Raised as error:
        return {"error": str(error), "raised": True}
    except Exception as error:  # whatever Python raises is the answer here
        return {"error": f"{type(error).__name__}: {error}", "raised": False}


def main():
    env = environment()
    with open(sys.argv[1], encoding="utf-8") as file:
        probes = json.load(file)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith(".json"):
            file = json.loads(text)
            snippets = enumerate(file["snippets"])
            jobs = [(i, compiled(env, s["source"]), file["variables"]) for i, s in snippets]
        else:
            template = compiled(env, text)
            jobs = [(probe["name"], template, probe["variables"]) for probe in probes]
        for probe, template, variables in jobs:
            answer = render(template, variables)
            print(json.dumps({"template": path, "probe": probe, **answer}))


main()
