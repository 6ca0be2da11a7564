"""Asks a running Pleach for tool calls with the official `openai` client, and checks what comes back.

usage: openai_tools.py BASE_URL

BASE_URL ends in /v1. The server must run the script of tests/tools.rs.
"""

import json
import sys

import openai

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"on": {"type": "boolean"}, "room": {"type": "string"}},
            },
        },
    }
    for name in ("lamp", "dim")
]
FIELDS = {"messages": [{"role": "user", "content": "Light!"}], "tools": TOOLS}
EXPECTED = [("lamp", {"on": True, "room": "été"}), ("dim", {})]


def calls_of(message):
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 2 and all(len(id) == 29 for id in ids), ids
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]


def check(what, choice):
    assert choice.finish_reason == "tool_calls", f"{what}: {choice}"
    assert choice.message.content == "Sure.", f"{what}: {choice}"
    assert calls_of(choice.message) == EXPECTED, f"{what}: {choice}"


def main():
    client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    whole = client.chat.completions.create(model=model, **FIELDS).choices[0]
    check("whole", whole)
    if not hasattr(client.chat.completions, "stream"):
        return print("this client has no chat.completions.stream")
    with client.chat.completions.stream(model=model, **FIELDS) as stream:
        for _ in stream:
            pass
        check("streamed", stream.get_final_completion().choices[0])
    # What was said goes back with the results of the calls.
    said = whole.message.model_dump(exclude_none=True)
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "done"} for call in whole.message.tool_calls
    ]
    history = {"messages": FIELDS["messages"] + [said] + results, "tools": TOOLS}
    client.chat.completions.create(model=model, **history)


main()
