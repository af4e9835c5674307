"""What is compared of a request and of an answer: everything that means something, and nothing that is new each time."""

import json

HEADERS = ["anthropic-version", "anthropic-beta", "x-api-key", "x-goog-api-key", "api-key", "authorization", "content-type"]
# New in each answer.
MASKED = {"id", "created", "created_at"}


def request(calls):
    """What the provider was sent."""
    if len(calls) != 1:
        return {"calls": len(calls)}
    call = calls[0]
    headers = {name: call["headers"][name] for name in HEADERS if name in call["headers"]}
    if "content-type" in headers:
        headers["content-type"] = headers["content-type"].split(";")[0]
    if headers.get("authorization", "").startswith("AWS4-HMAC-SHA256"):
        headers["authorization"] = "a signature"
    return {"path": call["path"], "query": call["query"], "headers": headers, "body": call["body"]}


def answer(path, status, headers, body):
    """What the client got."""
    kind = headers.get("content-type", "").split(";")[0]
    told = {"status": status, "content_type": kind}
    if kind == "text/event-stream":
        told["stream"] = _messages_stream(body) if path == "/messages" else _chat_stream(body)
        return told
    try:
        told["body"] = _masked(json.loads(body))
    except ValueError:
        told["text"] = body.decode("utf-8", "replace")
    return told


def _masked(value):
    if isinstance(value, dict):
        return {key: "masked" if key in MASKED and inner else _masked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    return value


def _events(body):
    for block in body.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        data = [line[5:].strip() for line in block.splitlines() if line.startswith("data:")]
        if data:
            yield "".join(data)


def _chat_stream(body):
    """A stream as its reader puts it together: how it is cut into events means nothing."""
    told = {"content": "", "calls": {}, "finish": [], "has_end": False}
    for data in _events(body):
        if data == "[DONE]":
            told["has_end"] = True
            continue
        chunk = json.loads(data)
        if chunk.get("usage"):
            told["usage"] = chunk["usage"]
        if chunk.get("error"):
            told["error"] = chunk["error"]
        for choice in chunk.get("choices") or []:
            delta = choice.get("delta") or {}
            told["content"] += delta.get("content") or choice.get("text") or ""
            calls = delta.get("tool_calls") or []
            if not isinstance(calls, list):
                told["no_list"] = True
                calls = [calls]
            for call in calls:
                kept = told["calls"].setdefault(str(call.get("index", 0)), {"id": "", "name": "", "arguments": ""})
                function = call.get("function") or {}
                kept["id"] = "some" if call.get("id") else kept["id"]
                kept["name"] += function.get("name") or ""
                kept["arguments"] += function.get("arguments") or ""
            if choice.get("finish_reason"):
                told["finish"].append(choice["finish_reason"])
    return told


def _messages_stream(body):
    told = {"text": "", "inputs": "", "events": []}
    for data in _events(body):
        event = json.loads(data)
        told["events"].append(event.get("type"))
        delta = event.get("delta") or {}
        told["text"] += delta.get("text") or ""
        told["inputs"] += delta.get("partial_json") or ""
        if event.get("usage"):
            told["usage"] = event["usage"]
    return told


def differences(ours, theirs, place=""):
    """Where two values differ: the place, ours and theirs. None stands for nothing."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{place}.{key}" if place else key)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs)):
            yield from differences(*pair, f"{place}.{index}")
    elif ours != theirs and not (_text(ours) is not None and _text(ours) == _text(theirs)):
        yield place, ours, theirs


def _text(value):
    """JSON inside of a text is the same however it is spaced."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else None
    except ValueError:
        return None
