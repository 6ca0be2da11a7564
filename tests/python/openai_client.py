"""Asks a running Pleach with the official `openai` client, and checks what comes back.

usage: openai_client.py BASE_URL KEY

BASE_URL ends in /v1. The server must serve the small model (SmolLM2 135M) repeatably, with a context
of CONTEXT tokens and at least CLIENTS sessions. Prints a line for each topic; exit code 1 if one fails.
"""

import asyncio
import sys
import time
import traceback

import openai

CONTEXT = 1024
CLIENTS = 8
TIMEOUT_SECONDS = 120
STORY = [{"role": "user", "content": "Tell me a short story about a cat who lives by the sea."}]
# The model's greedy answer to this is a sentence.
HELLO = [{"role": "user", "content": "Hi"}]
COUNTING = "1, 2, 3, 4, 5,"
# Many scripts, characters beyond the basic plane, joined and combining ones, control characters.
NASTY = (
    "Grüße, 世界! Привет 🙂👩\u200d👩\u200d👧🇫🇷 e\u0301 שלום नमस्ते ½ \U0001f9d1\U0001f3fd\u200d🚀"
    " \u00a0\u2028\t\u0000\u0007\r\n end"
)

TOPICS = []


def topic(check):
    TOPICS.append(check)
    return check


def same(what, got, expected):
    assert got == expected, f"{what}: got {got!r}, expected {expected!r}"


def raises(kind, request):
    """The error of that kind which the request must end in; its body must have OpenAI's shape."""
    try:
        answer = request()
    except openai.APIStatusError as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        shape = sorted(error.response.json()["error"])
        same("keys of the error", shape, ["code", "message", "param", "type"])
        assert error.body["message"], f"an error without a message: {error.body}"
        assert error.request_id, "an error without x-request-id"
        return error
    raise AssertionError(f"no {kind.__name__} but {answer!r}")


class Server:
    """The client, and how the topics ask."""

    def __init__(self, base_url, key):
        self.base_url, self.key = base_url, key
        self.client = self.new_client(openai.OpenAI)
        self.model = self.client.models.list().data[0].id

    def new_client(self, kind, **options):
        options = {"api_key": self.key, "timeout": TIMEOUT_SECONDS, "max_retries": 0, **options}
        return kind(base_url=self.base_url, **options)

    def chat(self, messages=STORY, **fields):
        fields = {"model": self.model, "messages": messages, "max_tokens": 16, **fields}
        return self.client.chat.completions.create(**fields)

    def complete(self, prompt=COUNTING, **fields):
        fields = {"model": self.model, "prompt": prompt, "max_tokens": 16, **fields}
        return self.client.completions.create(**fields)

    def tokens(self, text):
        """Token ids by the server's own tokenizer, whose URL is outside /v1."""
        url = self.base_url.removesuffix("/v1") + "/tokenize"
        return self.client.post(url, cast_to=object, body={"content": text})["tokens"]


class Joined:
    """A choice put together from a stream, chat or completions."""

    def __init__(self):
        self.text, self.finish, self.role, self.pieces, self.logprobs = "", None, None, [], []

    def add(self, choice):
        assert self.finish is None, f"a chunk after the end of choice {choice.index}: {choice!r}"
        if hasattr(choice, "delta"):
            assert self.role or choice.delta.role, "the first chunk does not name the role"
            self.role = self.role or choice.delta.role
            piece = choice.delta.content or ""
            if choice.logprobs:
                self.logprobs += choice.logprobs.content
        else:
            piece = choice.text
            if choice.logprobs:
                self.logprobs.append(choice.logprobs)
        self.text += piece
        self.pieces.append(piece)
        self.finish = choice.finish_reason


def joined(stream):
    """The choices by index, and all chunks."""
    choices, chunks = {}, list(stream)
    same("ids of the chunks", len({chunk.id for chunk in chunks}), 1)
    for chunk in chunks:
        for choice in chunk.choices:
            choices.setdefault(choice.index, Joined()).add(choice)
    for index, choice in choices.items():
        assert choice.finish, f"choice {index} never finished"
    return choices, chunks


def text_of(answer, index=0):
    choice = answer.choices[index]
    return choice.message.content if hasattr(choice, "message") else choice.text


@topic
def models(server):
    page = server.client.models.list()
    same("object", page.object, "list")
    same("ids", [model.id for model in page], [server.model])
    model = server.client.models.retrieve(server.model)
    same("id", model.id, server.model)
    same("object", model.object, "model")
    assert model.created > 0 and model.owned_by, model
    same("max_model_len", model.max_model_len, CONTEXT)
    error = raises(openai.NotFoundError, lambda: server.client.models.retrieve("no-such-model"))
    same("code", error.code, "model_not_found")


@topic
def greedy_continuations(server):
    text = text_of(server.complete("The capital city of France is called", max_tokens=8))
    assert text.startswith(" Paris."), text
    text = text_of(server.complete(COUNTING, max_tokens=12, temperature=0))
    assert text.startswith(" 6, 7, 8, 9,"), text


@topic
def chat_whole_and_streamed(server):
    for fields in [{"temperature": 0}, {"temperature": 0.9, "top_p": 0.95, "seed": 7}]:
        whole = server.chat(max_tokens=30, **fields)
        same("object", whole.object, "chat.completion")
        same("model", whole.model, server.model)
        assert whole.id.startswith("chatcmpl-") and whole.created > 0, whole
        same("choices", len(whole.choices), 1)
        message = whole.choices[0].message
        same("role", message.role, "assistant")
        assert message.content and not message.tool_calls and not message.refusal, message
        usage = whole.usage
        same("total", usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        choices, chunks = joined(server.chat(max_tokens=30, stream=True, **fields))
        same("object of a chunk", {chunk.object for chunk in chunks}, {"chat.completion.chunk"})
        same("streamed text", choices[0].text, message.content)
        same("streamed finish", choices[0].finish, whole.choices[0].finish_reason)
        same("role", choices[0].role, "assistant")
        assert sum(bool(piece) for piece in choices[0].pieces) > 5, choices[0].pieces
        assert all(chunk.usage is None for chunk in chunks), "usage that was not asked for"


@topic
def completions_whole_and_streamed(server):
    for fields in [{"temperature": 0}, {"temperature": 0.9, "seed": 7}, {"echo": True}]:
        whole = server.complete("Once upon a time", max_tokens=30, **fields)
        same("object", whole.object, "text_completion")
        assert whole.id.startswith("cmpl-"), whole.id
        choices, chunks = joined(
            server.complete("Once upon a time", max_tokens=30, stream=True, **fields)
        )
        same("object of a chunk", {chunk.object for chunk in chunks}, {"text_completion"})
        same("streamed text", choices[0].text, whole.choices[0].text)
        same("streamed finish", choices[0].finish, whole.choices[0].finish_reason)
    same("default length", server.complete(max_tokens=openai.omit).usage.completion_tokens, 16)


@topic
def completion_prompts_in_every_form(server):
    first, second = "The sky is", "Grass is often"
    alone = [text_of(server.complete(prompt)) for prompt in (first, second)]
    for prompts in [[first, second], [server.tokens(first), server.tokens(second)]]:
        answer = server.complete(prompts)
        same("indices", [choice.index for choice in answer.choices], [0, 1])
        same("texts", [choice.text for choice in answer.choices], alone)
    same("of ids", text_of(server.complete(server.tokens(first))), alone[0])
    pairs = server.complete([first, second], n=2)
    same("indices", [choice.index for choice in pairs.choices], [0, 1, 2, 3])
    same("greedy texts", [c.text for c in pairs.choices], [alone[0]] * 2 + [alone[1]] * 2)


@topic
def chat_logprobs(server):
    fields = {"max_tokens": 12, "logprobs": True, "top_logprobs": 5, "temperature": 0}
    whole = server.chat(**fields)
    choice = whole.choices[0]
    entries = choice.logprobs.content
    same("entries", len(entries), whole.usage.completion_tokens)
    same("joined tokens", "".join(entry.token for entry in entries), choice.message.content)
    spelled = bytes(byte for entry in entries for byte in entry.bytes)
    same("joined bytes", spelled, choice.message.content.encode())
    for entry in entries:
        top = [one.logprob for one in entry.top_logprobs]
        same("top", len(top), 5)
        same("order of the top", top, sorted(top, reverse=True))
        assert top[0] <= 0, f"a probability over 1: {top}"
        same("the greedy token", entry.token, entry.top_logprobs[0].token)
        same("its logprob", entry.logprob, top[0])
    choices, _ = joined(server.chat(stream=True, **fields))
    same("streamed logprobs", choices[0].logprobs, entries)
    plain = server.chat(max_tokens=2, logprobs=True).choices[0].logprobs.content
    same("without top_logprobs", [entry.top_logprobs for entry in plain], [[], []])
    same("not asked for", server.chat(max_tokens=2).choices[0].logprobs, None)


@topic
def completion_logprobs_with_echo(server):
    prompt = "Zürich 🙂 is"
    whole = server.complete(prompt, max_tokens=6, logprobs=3, echo=True)
    choice, logprobs = whole.choices[0], whole.choices[0].logprobs
    assert choice.text.startswith(prompt), choice.text
    same("entries", len(logprobs.tokens), whole.usage.total_tokens)
    same("first logprob", (logprobs.token_logprobs[0], logprobs.top_logprobs[0]), (None, None))
    assert all(value <= 0 for value in logprobs.token_logprobs[1:]), logprobs.token_logprobs
    for top, token, value in zip(
        logprobs.top_logprobs[1:], logprobs.tokens[1:], logprobs.token_logprobs[1:]
    ):
        assert 1 <= len(top) <= 4, f"3 and the chosen one at most: {top}"
        assert token in top, f"{token!r} is not in {top}"
        assert "\ufffd" in token or top[token] == value, f"{token!r} is not {value} in {top}"
    offsets = logprobs.text_offset
    same("order of the offsets", offsets, sorted(offsets))
    for token, at in zip(logprobs.tokens, offsets):
        assert "\ufffd" in token or choice.text[at:].startswith(token), (token, at, choice.text)
    choices, _ = joined(server.complete(prompt, max_tokens=6, logprobs=3, echo=True, stream=True))
    parts = choices[0].logprobs
    same("streamed tokens", sum((part.tokens for part in parts), []), logprobs.tokens)
    same("streamed offsets", sum((part.text_offset for part in parts), []), offsets)
    only_prompt = server.complete(prompt, max_tokens=0, logprobs=0, echo=True)
    same("the prompt alone", text_of(only_prompt), prompt)
    same("its answer's tokens", only_prompt.usage.completion_tokens, 0)
    same(
        "its logprobs",
        only_prompt.choices[0].logprobs.token_logprobs,
        logprobs.token_logprobs[: only_prompt.usage.prompt_tokens],
    )


@topic
def three_choices(server):
    fields = {"n": 3, "temperature": 1.0, "seed": 5, "max_tokens": 12, "logprobs": True}
    whole = server.chat(**fields)
    same("indices", [choice.index for choice in whole.choices], [0, 1, 2])
    texts = [choice.message.content for choice in whole.choices]
    same("different texts", len(set(texts)), 3)
    again = server.chat(**fields)
    same("texts again", [choice.message.content for choice in again.choices], texts)
    lengths = [len(choice.logprobs.content) for choice in whole.choices]
    same("finish", [choice.finish_reason for choice in whole.choices], ["length"] * 3)
    same("completion tokens", whole.usage.completion_tokens, sum(lengths))
    one = server.chat(**{**fields, "n": 1})
    same("prompt tokens", whole.usage.prompt_tokens, one.usage.prompt_tokens)
    same("the first choice alone", text_of(one), texts[0])
    choices, _ = joined(server.chat(stream=True, **fields))
    same("streamed texts", [choices[index].text for index in range(3)], texts)


@topic
def stop_strings(server):
    for stop in [", 8", [", 8"], ["never", "7, 8", ", 8", "x"]]:
        whole = server.complete(max_tokens=30, stop=stop)
        expected = " 6, " if "7, 8" in stop else " 6, 7"
        same(f"text before {stop!r}", text_of(whole), expected)
        same("finish", whole.choices[0].finish_reason, "stop")
        choices, _ = joined(server.complete(max_tokens=30, stop=stop, stream=True))
        same("streamed text", choices[0].text, expected)
        same("streamed finish", choices[0].finish, "stop")
    held_back = server.complete(max_tokens=12, stop="6, 7, 8, 9, 11")
    same("a stop that almost comes", text_of(held_back), text_of(server.complete(max_tokens=12)))
    same("its finish", held_back.choices[0].finish_reason, "length")
    story = text_of(server.chat(max_tokens=30))
    middle = story[10:14]
    same("chat", text_of(server.chat(max_tokens=30, stop=middle)), story[: story.index(middle)])


@topic
def seeds(server):
    def story(**fields):
        return text_of(server.chat(HELLO, max_tokens=20, temperature=1.5, **fields))

    same("the same seed", story(seed=42), story(seed=42))
    same("different seeds", len({story(seed=seed) for seed in range(3)}), 3)
    same("no seed", len({story() for _ in range(2)}), 2)
    same("greedy", text_of(server.chat(seed=1)), text_of(server.chat(seed=2)))


@topic
def logit_bias(server):
    paris = server.tokens(" Paris")
    same("tokens of ' Paris'", len(paris), 1)
    prompt = "The capital city of France is called"
    without = server.complete(prompt, logit_bias={str(paris[0]): -100})
    assert not text_of(without).startswith(" Paris"), text_of(without)


@topic
def usage_in_streams(server):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    for ask in (server.chat, server.complete):
        whole = ask(n=2).usage
        _, chunks = joined(ask(n=2, **options))
        *before, last = chunks
        same("choices of the last chunk", last.choices, [])
        same("usage", last.usage, whole)
        assert all(chunk.usage is None for chunk in before), "usage before the last chunk"
        assert all(chunk.choices for chunk in before), "a chunk without choices before the last"


@topic
def raw_responses(server):
    raw = server.client.chat.completions.with_raw_response.create(
        model=server.model, messages=STORY, max_tokens=4
    )
    same("status", raw.status_code, 200)
    assert raw.headers["x-request-id"], raw.headers
    same("type", raw.headers["content-type"], "application/json")
    same("parsed request id", raw.parse()._request_id, raw.headers["x-request-id"])
    named = server.client.completions.with_raw_response.create(
        model=server.model, prompt="a", max_tokens=1, extra_headers={"x-request-id": "mine-1"}
    )
    same("own request id", named.headers["x-request-id"], "mine-1")
    streaming = server.client.chat.completions.with_streaming_response.create(
        model=server.model, messages=STORY, max_tokens=4, stream=True
    )
    with streaming as response:
        kind = response.headers["content-type"]
        assert kind.startswith("text/event-stream"), kind
        lines = [line for line in response.iter_lines() if line]
    same("the last line", lines[-1], "data: [DONE]")
    assert all(line.startswith("data: {") for line in lines[:-1]), lines


@topic
def stream_helper(server):
    """Newer clients put a stream's events together themselves."""
    if not hasattr(server.client.chat.completions, "stream"):
        return print("    this client has no chat.completions.stream")
    # It refuses to put an answer together that was cut off by its length.
    fields = {"model": server.model, "messages": HELLO, "max_tokens": 60, "logprobs": True}
    options = {"stream_options": {"include_usage": True}}
    with server.client.chat.completions.stream(**fields, **options) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    whole = server.client.chat.completions.create(**fields)
    deltas = "".join(event.delta for event in events if event.type == "content.delta")
    same("deltas", deltas, text_of(whole))
    done = [event.content for event in events if event.type == "content.done"]
    same("content.done", done, [text_of(whole)])
    same("final text", text_of(final), text_of(whole))
    same("final role", final.choices[0].message.role, "assistant")
    same("final finish", final.choices[0].finish_reason, whole.choices[0].finish_reason)
    tokens = [entry.token for entry in final.choices[0].logprobs.content]
    same("final logprobs", tokens, [entry.token for entry in whole.choices[0].logprobs.content])
    same("final usage", final.usage.total_tokens, whole.usage.total_tokens)


@topic
def conversations(server):
    turns = [
        {"role": "system", "content": "You are a pirate. Answer in one sentence."},
        {"role": "user", "content": "What is your name?"},
        {"role": "assistant", "content": "Arr, I am Captain Reed."},
        {"role": "user", "content": "And what is your ship's name?", "name": "ann"},
    ]
    whole = server.chat(turns)
    assert text_of(whole), whole
    shorter = server.chat(turns[:2])
    assert whole.usage.prompt_tokens > shorter.usage.prompt_tokens, "history is not in the prompt"
    no_system = server.chat(turns[1:])
    assert whole.usage.prompt_tokens != no_system.usage.prompt_tokens, "system is not in the prompt"
    parts = [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in turns]
    same("content in parts", text_of(server.chat(parts)), text_of(whole))
    replayed = [*turns[:2], server.chat(turns[:2]).choices[0].message, turns[3]]
    assert text_of(server.chat(replayed)), "an answer's message goes back as history"


@topic
def unicode(server):
    echoed = server.complete(NASTY, max_tokens=0, echo=True)
    same("the prompt echoed", text_of(echoed), NASTY)
    choices, _ = joined(server.complete(NASTY, max_tokens=0, echo=True, stream=True))
    same("the same streamed", choices[0].text, NASTY)
    messages = [{"role": "user", "content": NASTY}]
    whole = server.chat(messages, max_tokens=24, seed=3, temperature=1.0)
    choices, _ = joined(
        server.chat(messages, max_tokens=24, seed=3, temperature=1.0, stream=True)
    )
    same("an answer to it", choices[0].text, text_of(whole))
    # The model goes on with the same emoji, each of several tokens.
    party = "🎉🎊🎉🎊🎉🎊🎉🎊"
    whole = text_of(server.complete(party, max_tokens=15))
    assert whole.startswith("🎉"), whole
    choices, _ = joined(server.complete(party, max_tokens=15, stream=True))
    same("streamed emoji", choices[0].text, whole)
    same("pieces with half a character", [p for p in choices[0].pieces[:-2] if "\ufffd" in p], [])
    same("a stop", text_of(server.complete(party, max_tokens=15, stop="🎉")), "")


@topic
def lengths_of_answers(server):
    for fields in [
        {"max_tokens": 5},
        {"max_tokens": openai.omit, "max_completion_tokens": 5},
        {"max_tokens": 9, "max_completion_tokens": 5},
    ]:
        answer = server.chat(**fields)
        same(f"tokens with {fields}", answer.usage.completion_tokens, 5)
        same("finish", answer.choices[0].finish_reason, "length")
    ended = server.chat(HELLO, max_tokens=60)
    same("finish", ended.choices[0].finish_reason, "stop")
    assert "<|im_end|>" not in text_of(ended), text_of(ended)


@topic
def fields_that_frameworks_send(server):
    answer = server.chat(
        store=False,
        user="u-1",
        metadata={"a": "b"},
        service_tier="auto",
        response_format={"type": "text"},
        modalities=["text"],
        tool_choice="none",
        frequency_penalty=0,
        presence_penalty=0.0,
        logit_bias={},
        stop=None,
        top_p=1,
        n=1,
    )
    same("an answer as without them", text_of(answer), text_of(server.chat()))


@topic
def wrong_keys(server):
    for key in ["sk-wrong", server.key + "x", server.key[:-1]]:
        client = server.new_client(openai.OpenAI, api_key=key)
        for request in [
            client.models.list,
            lambda: client.chat.completions.create(model=server.model, messages=STORY),
            lambda: client.embeddings.create(model=server.model, input="a"),
        ]:
            error = raises(openai.AuthenticationError, request)
            same("code", error.code, "invalid_api_key")
            assert key not in error.message, "the error repeats the key"


@topic
def unknown_models_and_endpoints(server):
    for ask in (server.chat, server.complete):
        for stream in (False, True):
            error = raises(openai.NotFoundError, lambda: ask(model="gpt-4o", stream=stream))
            same("code", error.code, "model_not_found")
            same("param", error.param, "model")
            assert "gpt-4o" in error.message, error.message
    error = raises(
        openai.NotFoundError,
        lambda: server.client.embeddings.create(model=server.model, input="a"),
    )
    same("code", error.code, "unknown_url")
    assert "/v1/embeddings" in error.message, error.message


@topic
def bad_requests(server):
    def refused(ask, param, code=None, **fields):
        for stream in (False, True):
            error = raises(openai.BadRequestError, lambda: ask(stream=stream, **fields))
            what = f"for {str(fields)[:200]}"
            same(f"param {what}", error.param, param)
            same(f"type {what}", error.type, "invalid_request_error")
            same(f"code {what}", error.code, code)
        return error.message

    for ask in (server.chat, server.complete):
        assert "-0.1" in refused(ask, "temperature", temperature=-0.1)
        refused(ask, "temperature", temperature="warm")
        refused(ask, "top_p", top_p=1.5)
        refused(ask, "frequency_penalty", frequency_penalty=3)
        assert "5" in refused(ask, "stop", stop=["a", "b", "c", "d", "e"])
        refused(ask, "stop", stop="")
        refused(ask, "stop[1]", stop=["a", ""])
        refused(ask, "n", n=0)
        refused(ask, "n", n=1000)
        refused(ask, "max_tokens", max_tokens=-1)
        refused(ask, "seed", seed=1.5)
        refused(ask, "logit_bias", logit_bias={"9999999": 1})
    refused(server.chat, "top_logprobs", top_logprobs=2)
    refused(server.chat, "top_logprobs", logprobs=True, top_logprobs=21)
    refused(server.chat, "messages", messages=[])
    refused(server.chat, "messages[0].role", messages=[{"role": "bot", "content": "a"}])
    refused(server.chat, "messages[0].content", messages=[{"role": "user"}])
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
    picture = [{"role": "user", "content": [image]}]
    refused(server.chat, "messages[0].content[0].type", messages=picture)
    refused(server.complete, "prompt", prompt=[])
    refused(server.complete, "suffix", suffix="the end")
    refused(server.complete, "best_of", best_of=4)
    error = raises(openai.BadRequestError, lambda: server.chat(stream_options={}))
    same("param", error.param, "stream_options")


@topic
def context_overflow(server):
    long = "word " * (CONTEXT + 100)
    for request, param, number in [
        (lambda: server.complete(long), "prompt", len(server.tokens(long))),
        (lambda: server.chat([{"role": "user", "content": long}]), "messages", CONTEXT),
        (lambda: server.chat([{"role": "user", "content": long}], stream=True), "messages", CONTEXT),
        (lambda: server.complete(max_tokens=CONTEXT), "max_tokens", CONTEXT),
    ]:
        error = raises(openai.BadRequestError, request)
        same("code", error.code, "context_length_exceeded")
        same("param", error.param, param)
        for named in (number, CONTEXT):
            assert str(named) in error.message, f"{named} is not in: {error.message}"
    counting = server.tokens(COUNTING) * CONTEXT
    full = server.complete(
        counting[: CONTEXT - 8], max_tokens=8, extra_body={"ignore_eos": True}
    )
    same("a full context", full.usage.total_tokens, CONTEXT)
    same("its finish", full.choices[0].finish_reason, "length")
    over = lambda: server.complete(counting[: CONTEXT - 7], max_tokens=8)
    same("one more", raises(openai.BadRequestError, over).code, "context_length_exceeded")


@topic
def streams_left_in_the_middle(server):
    endless = {"max_tokens": 900, "stream": True, "extra_body": {"ignore_eos": True}}
    whole = text_of(server.complete())
    # More than there are sessions: those left must make room.
    for _ in range(2 * CLIENTS):
        stream = server.complete("Once", **endless)
        assert next(iter(stream)).choices, "a first chunk"
        stream.response.close()
    same("an answer afterwards", text_of(server.complete()), whole)
    together = [server.chat(HELLO, **endless) for _ in range(CLIENTS)]
    for stream in together:
        with stream:
            next(iter(stream))
    same("an answer after all of them", text_of(server.complete()), whole)
    hasty = server.client.with_options(timeout=0.3)
    try:
        hasty.completions.create(
            model=server.model, prompt="a", max_tokens=1000, extra_body={"ignore_eos": True}
        )
        raise AssertionError("1000 tokens came at once")
    except openai.APITimeoutError:
        pass
    same("an answer after a timeout", text_of(server.complete()), whole)


@topic
def concurrent_streams(server):
    """Each gets what it would get alone."""

    def fields(number):
        content = f"Write a poem about the number {number}. " * (1 + number % 3)
        messages = [{"role": "user", "content": content}]
        return {
            "model": server.model,
            "messages": messages,
            "max_tokens": 20,
            "temperature": 0.8,
            "seed": number,
        }

    async def streamed(client, number):
        stream = await client.chat.completions.create(stream=True, **fields(number))
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return "".join(pieces)

    async def together():
        async with server.new_client(openai.AsyncOpenAI) as client:
            return await asyncio.gather(*(streamed(client, number) for number in range(CLIENTS)))

    texts = asyncio.run(together())
    for number, text in enumerate(texts):
        alone = text_of(server.client.chat.completions.create(**fields(number)))
        same(f"stream {number} among others", text, alone)


def main():
    if not __debug__:
        sys.exit("the checks are assertions: run without -O")
    server = Server(*sys.argv[1:])
    failed = []
    for check in TOPICS:
        start = time.monotonic()
        try:
            check(server)
            print(f"ok      {check.__name__}, {time.monotonic() - start:.1f} s", flush=True)
        except Exception:
            failed.append(check.__name__)
            print(f"FAILED  {check.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"openai {openai.__version__}: {len(TOPICS)} topics, {len(failed)} failed: {failed}")
    sys.exit(1 if failed else 0)


main()
