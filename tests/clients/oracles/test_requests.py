"""Every request that we write, by the types that the vendor publishes for it."""

import copy
import inspect
import typing

import pytest
from cohere.v2.client import V2Client
from google.genai import types as google
from pydantic import TypeAdapter

import converse
import exceptions
import golden
import typed_dicts
from verdicts import Verdicts, extras, flaws

NOT_STREAMING = {
    "chat": ("CompletionCreateParamsNonStreaming", "openai.types.chat.completion_create_params"),
    "responses": ("ResponseCreateParamsNonStreaming", "openai.types.responses.response_create_params"),
    "messages": ("MessageCreateParamsNonStreaming", "anthropic.types.message_create_params"),
    "completions": ("CompletionCreateParamsNonStreaming", "openai.types.completion_create_params"),
}


def by_typed_dict(target):
    adapter = typed_dicts.adapter(*NOT_STREAMING[target])

    def check(body):
        body.pop("stream", None)
        return flaws(adapter, body)

    return check


def by_google():
    """The SDK has types for what a body holds, none for the body."""
    adapters = {
        name: TypeAdapter(kind)
        for name, kind in {
            "model": str,
            "contents": list[google.Content],
            "systemInstruction": google.Content,
            "tools": list[google.Tool],
            "toolConfig": google.ToolConfig,
            "generationConfig": google.GenerationConfig,
            "safetySettings": list[google.SafetySetting],
            "cachedContent": str,
            "labels": dict[str, str],
        }.items()
    }
    return lambda body: by_fields(adapters, body)


def by_cohere():
    """The arguments of the client's call are the fields of the body."""
    hints = typing.get_type_hints(V2Client.chat)
    names = set(inspect.signature(V2Client.chat).parameters) - {"self", "request_options"}
    adapters = {name: TypeAdapter(closed(hints[name])) for name in names}

    def check(body):
        body.pop("stream", None)
        found = by_fields(adapters, body)
        known = {name: value for name, value in body.items() if name in adapters}
        return found or [f"{name}{place}: unknown" for name, value in known.items()
                         for place in extras(adapters[name].validate_python(value))]

    return check


def closed(hint):
    """Cohere's enumerations are open to words that are yet to come; ours are not."""
    members = typing.get_args(hint) if typing.get_origin(hint) is typing.Union else ()
    return typing.Union[tuple(one for one in members if one is not typing.Any)] if typing.Any in members else hint


def by_fields(adapters, body):
    found = [f"{name}: unknown" for name in body if name not in adapters]
    for name in body.keys() & adapters.keys():
        found += [f"{name}.{flaw}" for flaw in flaws(adapters[name], body[name])]
    return found


def by_aws():
    def check(body):
        body["modelId"] = body.pop("model")
        return converse.flaws(body, converse.REQUEST)

    return check


CHECKS = {
    "chat": lambda: by_typed_dict("chat"),
    "responses": lambda: by_typed_dict("responses"),
    "messages": lambda: by_typed_dict("messages"),
    "completions": lambda: by_typed_dict("completions"),
    "gemini": by_google,
    "cohere": by_cohere,
    "converse": by_aws,
}


@pytest.mark.parametrize("target", CHECKS)
def test_requests_are_of_the_vendors_types(target):
    check = CHECKS[target]()
    verdicts = Verdicts("requests", target, exceptions.REQUESTS)
    paths = [path for wire, path in exceptions.EXTENSIONS if wire == target]
    taken = set()
    for fixture, body in golden.requests(target):
        body = copy.deepcopy(body)
        taken |= {path for path in paths if exceptions.take_away(body, path)}
        verdicts.add(fixture, check(body))
    verdicts.check(least=10 if target == "completions" else 100)
    assert taken == set(paths), f"extensions that nothing needs: {set(paths) - taken}"


USER = {"role": "user", "content": "x"}
# One request for each format, and what to put where so that it is wrong.
RIGHT = {
    "chat": {"model": "m", "messages": [USER]},
    "responses": {"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]},
    "messages": {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
    "completions": {"model": "m", "prompt": "x"},
    "gemini": {"model": "m", "contents": [{"role": "user", "parts": [{"text": "x"}]}]},
    "cohere": {"model": "m", "messages": [USER]},
    "converse": {"model": "m", "messages": [{"role": "user", "content": [{"text": "x"}]}]},
}
WRONG = [
    ("chat", ["portcullis"], 1),
    ("chat", ["messages", 0, "portcullis"], 1),
    ("chat", ["messages", 0, "role"], "model"),
    ("chat", ["tools"], [{"type": "function", "function": {"parameters": {}}}]),
    ("responses", ["messages"], []),
    ("responses", ["input", 0, "id_of_call"], "c"),
    ("responses", ["input", 0, "arguments"], {}),
    ("messages", ["portcullis"], 1),
    ("messages", ["max_tokens"], None),
    ("messages", ["messages", 0, "content", 0, "type"], "input_text"),
    ("messages", ["messages", 0, "content", 0, "portcullis"], 1),
    ("messages", ["tools"], [{"name": "n", "parameters": {}}]),
    ("completions", ["messages"], []),
    ("gemini", ["portcullis"], 1),
    ("gemini", ["contents", 0, "parts", 0, "type"], "text"),
    ("gemini", ["generationConfig"], {"max_tokens": 1}),
    ("gemini", ["tools"], [{"functionDeclarations": [{"name": "n", "input_schema": {}}]}]),
    ("cohere", ["top_p"], 1),
    ("cohere", ["messages", 0, "role"], "model"),
    ("cohere", ["messages", 0, "portcullis"], 1),
    ("cohere", ["tool_choice"], "required"),
    ("converse", ["portcullis"], 1),
    ("converse", ["messages", 0, "role"], "model"),
    ("converse", ["messages", 0, "content", 0, "type"], "text"),
    ("converse", ["messages", 0, "content", 0], {"image": {"format": "bmp", "source": {"bytes": "x"}}}),
    ("converse", ["toolConfig"], {"tools": [{"toolSpec": {"name": "no spaces", "inputSchema": {"json": {}}}}]}),
]


@pytest.mark.parametrize("target", CHECKS)
def test_the_types_refuse_what_is_wrong(target):
    """An oracle that agrees with everything says nothing."""
    check = CHECKS[target]()
    assert check(copy.deepcopy(RIGHT[target])) == []
    for _, path, value in [wrong for wrong in WRONG if wrong[0] == target]:
        body = copy.deepcopy(RIGHT[target])
        place = body
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert check(body), f"{path} = {value} passes"
