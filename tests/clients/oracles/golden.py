"""What our codecs wrote, from the golden files: `tests/golden/<format>/<kind>/<name>.expected.*` holds one fixture
written to every format."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden"
FORMATS = ("chat", "messages", "responses", "gemini", "converse", "cohere", "completions")


def _files(kind, ending):
    files = [file for name in FORMATS for file in sorted((FOLDER / name / kind).glob(f"*.expected.{ending}"))]
    assert len(files) >= 50, f"only {len(files)} golden {kind}: are they elsewhere now?"
    return files


def _name(file):
    return f"{file.parent.parent.name}/{file.name.split('.')[0]}"


def requests(target):
    """(name of the fixture, body) of every request that was written to this format."""
    for file in _files("requests", "json"):
        written = json.loads(file.read_text()).get(target, {})
        if "body" in written:
            yield _name(file), {"model": "any"} | written["body"]


def answers(target):
    for file in _files("answers", "json"):
        written = json.loads(file.read_text())
        if target in written:
            yield _name(file), written[target]


def errors(target):
    """(name, status, body) of every error that was written to this format."""
    for file in _files("errors", "json"):
        written = json.loads(file.read_text())
        yield _name(file), int(written["kind"].split()[-1]), written[target]


def streams(target):
    """(name, text) of every stream that was written to this format."""
    for file in _files("streams", "txt"):
        for section in file.read_text().split("== ")[1:]:
            title, _, text = section.partition("\n")
            if title == target:
                yield _name(file), text


def events(text):
    """(name, data) of each event; `data` is JSON, or the text of what is none."""
    return [_event(block) for block in text.split("\n\n") if block.strip()]


def _event(block):
    name, data = None, ""
    for line in block.split("\n"):
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data += value
    try:
        return name, json.loads(data)
    except ValueError:
        return name, data
