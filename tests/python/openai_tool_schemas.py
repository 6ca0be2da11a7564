"""Asks a running Pleach for tool calls of many schemas with the official `openai` client.

usage: openai_tool_schemas.py BASE_URL COUNT

BASE_URL ends in /v1. The server must serve a real model repeatably, with a template that shows tools.
Sends COUNT requests that must be answered by calls, and a tenth as many that must not, or may, be.
Prints each call as a line of JSON with its schema: whether they agree is for the caller to judge.
"""

import collections
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

SCHEMAS = 50
CLIENTS = 8
WORDS = "alpha bravo café delta echo foxtrot golf hotel india juliett".split()
PATTERNS = ["^[A-Z]{3}-[0-9]{4}$", "^(red|green|blue)+$", "^#[0-9a-f]{6}$", "^v[0-9]+(\\.[0-9]+){2}$"]
FORMATS = ["date", "date-time", "time", "uuid", "ipv4", "email", "hostname"]


def string(rand):
    return rand.choice([
        {"type": "string", "maxLength": rand.randint(4, 24)},
        {"type": "string", "minLength": 2, "maxLength": rand.randint(3, 12)},
        {"type": "string", "pattern": rand.choice(PATTERNS), "maxLength": 24},
        {"type": "string", "format": rand.choice(FORMATS), "maxLength": 40},
        {"enum": rand.sample(WORDS, rand.randint(1, 5))},
        {"const": rand.choice(WORDS)},
    ])


def number(rand):
    low = rand.randint(-50, 50)
    return rand.choice([
        {"type": "integer", "minimum": low, "maximum": low + rand.randint(0, 200)},
        {"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": low + 9},
        {"type": "integer", "multipleOf": rand.choice([3, 5, 7, 10]), "minimum": 0, "maximum": 500},
        {"type": "number", "minimum": low + 0.5, "maximum": low + 9.75},
        {"type": ["integer", "null"], "minimum": 1, "maximum": 12},
    ])


def array(rand, depth):
    low = rand.randint(0, 2)
    return rand.choice([
        {"type": "array", "items": value(rand, depth), "minItems": low, "maxItems": low + 2},
        {"type": "array", "items": {"enum": WORDS[:4]}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
        {"type": "array", "prefixItems": [string(rand), number(rand)], "items": False, "minItems": 2},
    ])


def value(rand, depth):
    kinds = [string, number, lambda rand: {"type": "boolean"}]
    if depth > 0:
        kinds += [
            lambda rand: array(rand, depth - 1),
            lambda rand: members(rand, rand.randint(1, 3), depth - 1),
            lambda rand: {"anyOf": [string(rand), number(rand), {"type": "null"}]},
            lambda rand: {"$ref": "#/$defs/place"},
        ]
    return rand.choice(kinds)(rand)


def members(rand, count, depth):
    names = rand.sample(["name", "size", "when", "größe", "a b", "tag_1", "to", "x-y"], count)
    return {
        "type": "object",
        "properties": {name: value(rand, depth) for name in names},
        "required": rand.sample(names, rand.randint(0, count)),
        "additionalProperties": False,
    }


def schema_of(index):
    rand = random.Random(index)
    schema = members(rand, rand.randint(2, 4), 2)
    place = members(rand, 2, 0)
    # A place may hold others, to a depth that only its text bounds.
    place["properties"]["near"] = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]}
    if '"$ref"' in json.dumps(schema):
        schema["$defs"] = {"place": place}
    return schema


def tool_of(index):
    name = f"tool_{index}"
    return {"type": "function", "function": {"name": name, "parameters": schema_of(index)}}


TOOLS = [tool_of(index) for index in range(SCHEMAS)]


def named(tool):
    return {"type": "function", "function": {"name": tool["function"]["name"]}}


def allowed(tool):
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named(tool)]}}


# What a request asks for: fields, and whether more than one call may come.
def required(_):
    return {"tool_choice": "required", "parallel_tool_calls": False}, False


def parallel(_):
    return {"tool_choice": "required", "parallel_tool_calls": True}, True


def by_name(tool):
    return {"tool_choice": named(tool), "parallel_tool_calls": False}, False


def of_allowed(tool):
    return {"tool_choice": allowed(tool), "parallel_tool_calls": False}, False


MUST = [required, by_name, parallel, of_allowed]


class Asker:
    def __init__(self, base_url):
        self.client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
        self.model = self.client.models.list().data[0].id
        self.counts = collections.Counter()

    def whole(self, fields):
        return self.client.chat.completions.create(model=self.model, **fields).choices[0]

    def streamed(self, fields):
        pieces, done = collections.defaultdict(str), {}
        try:
            with self.client.chat.completions.stream(model=self.model, **fields) as stream:
                for event in stream:
                    if event.type == "tool_calls.function.arguments.delta":
                        pieces[event.index] += event.arguments_delta
                    elif event.type == "tool_calls.function.arguments.done":
                        done[event.index] = event.arguments
                choice = stream.get_final_completion().choices[0]
        except openai.LengthFinishReasonError as error:
            # The client's stream goes no further than an answer that ends by its length.
            choice = error.completion.choices[0]
            for index, call in enumerate(choice.message.tool_calls or []):
                assert call.function.arguments.startswith(pieces[index]), f"{pieces[index]} of {call}"
            return choice
        final = {index: call.function.arguments for index, call in enumerate(choice.message.tool_calls or [])}
        assert done == final, f"done events {done}, in the end {final}"
        assert dict(pieces) == final, f"pieces {dict(pieces)}, in the end {final}"
        return choice

    def ask(self, index, fields):
        """Every second answer is streamed, and some come both ways."""
        if index % 10 == 0:
            whole, streamed = self.whole(fields), self.streamed(fields)
            assert said(whole) == said(streamed), f"{said(whole)} whole, {said(streamed)} streamed"
            return whole
        return self.streamed(fields) if index % 2 else self.whole(fields)

    def fields(self, index, tool, **extra):
        others = [TOOLS[(index + 17) % SCHEMAS]]
        say = f"Call {tool['function']['name']} with values of your own."
        return {
            "messages": [{"role": "user", "content": say}],
            "tools": [tool, *others],
            "max_tokens": 300,
            "temperature": [0, 1][index // SCHEMAS % 2],
            "seed": index,
            **extra,
        }

    def must_call(self, index):
        tool = TOOLS[index % SCHEMAS]
        # Each schema meets each way to ask.
        kind = MUST[(index + index // SCHEMAS) % len(MUST)]
        extra, may_be_many = kind(tool)
        fields = self.fields(index, tool, **extra)
        choice = self.ask(index, fields)
        calls = choice.message.tool_calls or []
        what = f"{kind.__name__} {index}: {choice}"
        # Where another call may follow, only the model ends the turn; the calls are complete anyway.
        ended = ("tool_calls", "length") if may_be_many else ("tool_calls",)
        assert choice.finish_reason in ended, what
        assert len(calls) >= 1 and (may_be_many or len(calls) == 1), what
        assert len({call.id for call in calls}) == len(calls), what
        if kind in (by_name, of_allowed):
            assert calls[0].function.name == tool["function"]["name"], what
        self.counts["answers that had to call"] += 1
        self.counts["answers of two calls or more"] += len(calls) > 1
        self.told(fields, calls)

    def may_call(self, index):
        """`none` never calls, `auto` may."""
        tool = TOOLS[index % SCHEMAS]
        choice = self.ask(index, self.fields(index, tool, tool_choice="none", max_tokens=60))
        assert not choice.message.tool_calls and "<tool_call>" not in choice.message.content, choice
        assert choice.finish_reason in ("stop", "length"), choice
        fields = self.fields(index, tool)
        choice = self.whole(fields)
        calls = choice.message.tool_calls or []
        self.counts["auto answers that call"] += len(calls) > 0
        if choice.finish_reason == "tool_calls":
            self.told(fields, calls)
        elif choice.finish_reason == "stop":
            assert not calls and choice.message.content, choice
        else:
            # Cut within free text or within a call: there is nothing to judge.
            assert choice.finish_reason == "length", choice

    def told(self, fields, calls):
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in fields["tools"]}
        for call in calls:
            name = call.function.name
            assert name in schemas, f"{name} was not on offer"
            line = {"name": name, "schema": schemas[name], "arguments": call.function.arguments}
            # One write a line: other threads print as well.
            sys.stdout.write(json.dumps(line) + "\n")


def said(choice):
    calls = choice.message.tool_calls or []
    calls = [(call.function.name, call.function.arguments) for call in calls]
    return choice.finish_reason, choice.message.content or "", calls


def main():
    asker, count = Asker(sys.argv[1]), int(sys.argv[2])
    with ThreadPoolExecutor(CLIENTS) as threads:
        asked = [threads.submit(asker.must_call, index) for index in range(count)]
        asked += [threads.submit(asker.may_call, index) for index in range(max(count // 10, 1))]
    # Each fault is told, not only the first.
    faults = [request.exception() for request in asked if request.exception()]
    for fault in faults:
        print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
    print(dict(asker.counts), file=sys.stderr)
    sys.exit(f"{len(faults)} of {len(asked)} requests failed" if faults else 0)


main()
