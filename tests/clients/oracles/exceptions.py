"""Where we knowingly differ from the vendors' published types. One line each, with the reason; a line that nothing
needs any more fails its test."""

# Fields that are taken away before a request is checked: (format, path) -> reason. `*` is any item of a list.
EXTENSIONS = {
    ("messages", "temperature"): "gone from Anthropic's API with version 2026-10-21, which the SDK speaks; we say 2023-06-01",
    ("messages", "top_p"): "as temperature",
    ("messages", "top_k"): "as temperature",
    ("messages", "mcp_servers"): "a beta of Anthropic's, passed on from a client that asked for it",
    ("chat", "messages.*.tool_calls.*.function.thought_signature"):
        "Gemini's signature has to come back with its call; chat has no place of its own for it",
    ("chat", "messages.*.content.*.file.file_url"): "a file by address, as gateways write it; OpenAI takes ids and data",
    ("chat", "messages.*.content.*.file.mime_type"): "goes with file_url",
    ("gemini", "generationConfig.imageConfig"): "the SDK has it one level higher and moves it here itself",
}

# What a codec wrote of one fixture and a vendor does not have: (format, fixture) -> reason.
REQUESTS = {
    ("chat", "gemini/modalities"): "`image` is a modality of Gemini's and of routers that speak chat, not of OpenAI's",
    ("chat", "chat/server-tool"): "a tool of Anthropic's in the words of chat, for providers that take it there",
}

ANSWERS = {
    ("messages", "messages/unknown-stop"): "a reason that is new to us is passed on in its own format",
    ("gemini", "gemini/unknown-reason"): "as messages/unknown-stop",
}

STREAMS = {}

ERRORS = {
    ("messages", "messages/too-large"): "`request_too_large` is in Anthropic's list of errors, not in its SDK",
}

# Requests that every vendor refuses though each field is right: fixture -> reason.
SAYS_NOTHING = {"completions/empty": "a completion of nothing is a conversation without messages"}

# Streams that cannot say the same in every format: fixture -> reason.
DIFFERENT_STREAMS = {
    "chat/refusal": "Anthropic has no part for a refusal: there it is text",
    "responses/refusal": "as chat/refusal",
}

# Faults of codecs that are known and not yet mended: (kind, format, fixture) -> what is right. Remove with the mend.
FAULTS = {}


def take_away(value, path):
    """Removes what stands at a path; whether there was anything."""
    name, _, rest = path.partition(".")
    if name == "*":
        return isinstance(value, list) and any([take_away(item, rest) for item in value])
    if not isinstance(value, dict) or name not in value:
        return False
    if rest:
        return take_away(value[name], rest)
    del value[name]
    return True
