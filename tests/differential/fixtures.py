"""Answers of each wire, taken from the golden files, so that both gateways are told the same."""

import binascii
import json
import pathlib
import struct

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"

# What a case asks for by one word, by the names of the golden files of each wire.
ANSWERS = {
    "chat": {"tools": "parallel-calls", "thinking": "deepseek", "max": "length", "cached": "usage-details"},
    "messages": {"tools": "parallel-tool-use", "thinking": "thinking", "max": "max-tokens", "cached": "cache-usage"},
    "gemini": {"tools": "parallel-calls", "thinking": "thoughts", "max": "max-tokens", "cached": "cached-audio-usage"},
    "converse": {"tools": "parallel-tool-use", "thinking": "reasoning", "max": "max-tokens", "cached": "cache-usage"},
    "cohere": {"tools": "parallel-calls", "thinking": "thinking", "max": "max-tokens"},
}
STREAMS = {
    "chat": {"tools": "parallel-calls-side-by-side", "thinking": "reasoning"},
    "messages": {"tools": "parallel-tool-use", "thinking": "thinking", "cached": "cache-usage"},
    "gemini": {"tools": "parallel-calls", "thinking": "thoughts"},
    "converse": {"tools": "parallel-tool-use", "thinking": "reasoning", "cached": "cache-usage"},
    "cohere": {"tools": "parallel-calls", "thinking": "thinking"},
}
ERRORS = {
    "chat": {"busy": "rate-limit", "invalid": "bad-parameter"},
    "messages": {"busy": "rate-limit", "invalid": "invalid"},
    "gemini": {"busy": "exhausted", "invalid": "invalid"},
    "converse": {"busy": "throttling", "invalid": "validation"},
    "cohere": {"busy": "rate-limit", "invalid": "invalid"},
}
VECTOR = [0.5, -0.25]


def embeddings(wire, sent):
    """As many vectors as the request has texts."""
    texts = next((sent[key] for key in ("input", "texts", "requests") if key in sent), [])
    count = len(texts) if isinstance(texts, list) else 1
    match wire:
        case "openai":
            data = [{"object": "embedding", "index": n, "embedding": VECTOR} for n in range(count)]
            usage = {"prompt_tokens": 4, "total_tokens": 4}
            return {"object": "list", "model": "text-embedding-3-small", "usage": usage, "data": data}
        case "cohere":
            meta = {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 4}}
            return {"id": "e", "texts": texts, "embeddings": {"float": [VECTOR] * count}, "meta": meta}
        case "gemini":
            return {"embedding": {"values": VECTOR}}
        case "gemini_batch":
            return {"embeddings": [{"values": VECTOR}] * count}
        case "titan":
            return {"embedding": VECTOR, "inputTextTokenCount": 4}


def plain(wire, answer):
    """Status, headers and body of an answer that is no stream."""
    if name := ERRORS.get(wire, {}).get(answer):
        error = json.loads((GOLDEN / wire / "errors" / f"{name}.json").read_text())
        headers = {"x-amzn-errortype": error["type"]} if error.get("type") else {}
        body = error["body"]
        return error["status"], headers, body if isinstance(body, str) else json.dumps(body)
    name = ANSWERS.get(wire, {}).get(answer, "plain")
    return 200, {}, (GOLDEN / wire / "answers" / f"{name}.json").read_text()


def events(wire, answer):
    """The events of a stream, as names and data."""
    name = STREAMS.get(wire, {}).get(answer, "plain")
    text = (GOLDEN / wire / "streams" / f"{name}.sse").read_text().replace("\r\n", "\n")
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "data" in lines:
            yield lines.get("event"), lines["data"]


def server_sent(wire, answer):
    blocks = (f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n" for name, data in events(wire, answer))
    return "".join(blocks).encode()


def json_list(wire, answer):
    """Gemini's stream for whoever does not ask for events."""
    return ("[" + "\n,\r\n".join(data for _, data in events(wire, answer)) + "\n]").encode()


def frames(wire, answer):
    """An AWS event stream."""
    return b"".join(_frame(name, data.encode()) for name, data in events(wire, answer))


def _frame(name, payload):
    headers = b""
    for key, value in ((":message-type", "event"), (":event-type", name), (":content-type", "application/json")):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return body + struct.pack(">I", binascii.crc32(body))
