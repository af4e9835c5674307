"""The requests that both gateways are sent: every feature to every provider that has it, in the client's dialect."""

import json

MODELS = {
    "openai": "gpt-4o-mini", "azure-openai": "gpt-4o-mini", "anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-flash",
    "bedrock": "anthropic.claude-3-haiku-20240307-v1:0", "cohere": "command-a-03-2025", "mistral-ai": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile", "deepseek": "deepseek-chat",
}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
USER = {"role": "user", "content": "Hello"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "A forecast.", "parameters": SCHEMA}}
OTHER = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}


def call(number, city):
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"id": f"call_{number}", "type": "function", "function": function}


def result(number, text):
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def user(*parts):
    return {"role": "user", "content": list(parts)}


def text(words, **more):
    return {"type": "text", "text": words, **more}


HISTORY = [USER, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Go on"}]
CALLED = [USER, {"role": "assistant", "content": None, "tool_calls": [call(1, "Paris")]}, result(1, "sunny")]
CALLED_TWICE = [
    USER, {"role": "assistant", "content": "I look.", "tool_calls": [call(1, "Paris"), call(2, "Rome")]},
    result(1, "sunny"), result(2, "rain"), {"role": "user", "content": "And now?"},
]

# A feature: what it changes in a chat of one word, and the word of its answer.
FEATURES = {
    "plain": ({}, "plain"),
    "system": ({"messages": [{"role": "system", "content": "Be brief."}, USER]}, "plain"),
    "systems": ({"messages": [{"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."}, USER]}, "plain"),
    "developer": ({"messages": [{"role": "developer", "content": "Be brief."}, USER]}, "plain"),
    "history": ({"messages": HISTORY}, "plain"),
    "parts": ({"messages": [user(text("Hello"), text("World"))]}, "plain"),
    "sampling": ({"temperature": 0.5, "max_tokens": 50}, "plain"),
    "max_completion_tokens": ({"max_completion_tokens": 60}, "max"),
    "top_p": ({"top_p": 0.9}, "plain"),
    "stop": ({"stop": "END"}, "plain"),
    "stops": ({"stop": ["END", "STOP"]}, "plain"),
    "seed": ({"seed": 7}, "plain"),
    "user": ({"user": "ann"}, "plain"),
    "penalties": ({"frequency_penalty": 0.5, "presence_penalty": 0.25}, "plain"),
    "tools": ({"tools": [TOOL, OTHER]}, "tools"),
    "tools_auto": ({"tools": [TOOL], "tool_choice": "auto"}, "plain"),
    "tools_required": ({"tools": [TOOL], "tool_choice": "required"}, "tools"),
    "tools_named": ({"tools": [TOOL, OTHER], "tool_choice": {"type": "function", "function": {"name": "weather"}}}, "tools"),
    "tools_none": ({"tools": [TOOL], "tool_choice": "none"}, "plain"),
    "tool_result": ({"messages": CALLED, "tools": [TOOL]}, "plain"),
    "tool_results": ({"messages": CALLED_TWICE, "tools": [TOOL]}, "plain"),
    "image_data": ({"messages": [user(text("What?"), {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}})]}, "plain"),
    "json_object": ({"response_format": {"type": "json_object"}}, "plain"),
    "json_schema": ({"response_format": {"type": "json_schema", "json_schema": {"name": "c", "strict": True, "schema": SCHEMA}}}, "plain"),
    "reasoning": ({"reasoning_effort": "low", "max_tokens": 4000}, "thinking"),
    "thinking": ({"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}, "thinking"),
    "cached": ({"messages": [{"role": "system", "content": [text("Be brief.", cache_control={"type": "ephemeral"})]}, USER]}, "cached"),
    "stream": ({"stream": True}, "plain"),
    "stream_usage": ({"stream": True, "stream_options": {"include_usage": True}}, "plain"),
    "stream_tools": ({"stream": True, "tools": [TOOL, OTHER]}, "tools"),
    "stream_thinking": ({"stream": True, "reasoning_effort": "low", "max_tokens": 4000}, "thinking"),
    "busy": ({}, "busy"),
    "invalid": ({}, "invalid"),
}
# Those that speak the client's own format are asked for less.
SAME = ["plain", "systems", "tools", "tool_results", "image_data", "json_schema", "stream", "stream_tools", "busy"]


def case(name, path, provider, body, answer="plain", headers=None):
    return {"name": name, "path": path, "provider": provider, "text": json.dumps(body), "answer": answer, "headers": headers or {}}


def chats():
    for provider in ["anthropic", "google", "bedrock", "cohere"]:
        for feature, (changes, answer) in FEATURES.items():
            body = {"model": MODELS[provider], "messages": [USER], **changes}
            yield case(f"{provider}/{feature}", "/chat/completions", provider, body, answer)
    for provider in ["openai", "azure-openai", "mistral-ai", "groq", "deepseek"]:
        for feature in SAME:
            changes, answer = FEATURES[feature]
            body = {"model": MODELS[provider], "messages": [USER], **changes}
            yield case(f"{provider}/{feature}", "/chat/completions", provider, body, answer)
    for provider in ["anthropic", "openai"]:
        image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
        body = {"model": MODELS[provider], "messages": [user(text("What?"), image)]}
        yield case(f"{provider}/image_url", "/chat/completions", provider, body)


def others():
    for provider, model in [("openai", "text-embedding-3-small"), ("google", "gemini-embedding-001"),
                            ("cohere", "embed-v4.0"), ("bedrock", "amazon.titan-embed-text-v2:0")]:
        yield case(f"{provider}/embedding", "/embeddings", provider, {"model": model, "input": "a"})
    for provider, model in [("openai", "text-embedding-3-small"), ("cohere", "embed-v4.0")]:
        yield case(f"{provider}/embeddings", "/embeddings", provider, {"model": model, "input": ["a", "b"]})
    yield case("openai/completion", "/completions", "openai", {"model": "gpt-3.5-turbo-instruct", "prompt": "Hello"})
    message = {"model": MODELS["anthropic"], "max_tokens": 50, "messages": [USER]}
    tool = {"name": "weather", "input_schema": SCHEMA}
    for name, changes, answer in [
        ("plain", {}, "plain"), ("system", {"system": "Be brief."}, "plain"), ("tools", {"tools": [tool]}, "tools"),
        ("thinking", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}, "thinking"),
        ("cached", {"system": [text("Be brief.", cache_control={"type": "ephemeral"})]}, "cached"),
        ("stream", {"stream": True}, "plain"), ("stream_tools", {"stream": True, "tools": [tool]}, "tools"), ("busy", {}, "busy"),
    ]:
        yield case(f"messages-anthropic/{name}", "/messages", "anthropic", {**message, **changes}, answer)
        yield case(f"messages-bedrock/{name}", "/messages", "bedrock", {**message, **changes, "model": MODELS["bedrock"]}, answer)
    yield case("messages-anthropic/count", "/messages/count_tokens", "anthropic", {"model": MODELS["anthropic"], "messages": [USER]})


ALL = [*chats(), *others()]
