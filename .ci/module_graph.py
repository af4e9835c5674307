#!/usr/bin/env python3
"""Fails when rooms (the modules at the top of a crate, with all that is below them) depend on each other in a circle.

Reads every path that begins with `crate`, `super` or `self` in code that is not a test, `use` trees included, and draws
an arrow from the room where it stands to the room that it names. A circle is told by its path, with a line for each arrow.
"""

import re
import sys
from collections import deque
from pathlib import Path

CRATES = ["shared", "proxy", "admin"]

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|\b[bc]?r(?P<hashes>#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\[^\n]+?|[^'\\\n])'|'\w+|\w+|::|\S",
    re.S,
)
TEST = re.compile(r"cfg\((?:(?:any|all)\()?test\b")


def tokens(text):
    """(word, line) without comments and literals."""
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        word = match.group()
        if not word.startswith(("//", "/*")) and not word.endswith(('"', '"#', "'")):
            yield word, line


def without_tests(words):
    """Leaves out what `#[cfg(test)]` stands before. The second list: modules that are declared so."""
    kept, test_modules, at = [], [], 0
    while at < len(words):
        if words[at][0] == "#" and at + 1 < len(words) and words[at + 1][0] == "[":
            end = closing(words, at + 1)
            if TEST.match("".join(word for word, _ in words[at + 2 : end])):
                at = end + 1
                while words[at][0] == "#":
                    at = closing(words, at + 1) + 1
                start = at
                # An item ends with its braces or a semicolon, a field with a comma or the end of what it stands in.
                ends = (",", "}") if is_field(words, start) else (";", "{")
                while words[at][0] not in ends:
                    at = closing(words, at) if words[at][0] in "([" else at
                    at += 1
                item = [word for word, _ in words[start:at]]
                if "mod" in item and words[at][0] == ";":
                    test_modules.append(item[-1])
                if words[at][0] == "{":
                    at = closing(words, at) + 1
                elif words[at][0] != "}":
                    at += 1
                continue
        kept.append(words[at])
        at += 1
    return kept, test_modules


def is_field(words, at):
    """Whether `name: Type` stands there, rather than an item."""
    at += words[at][0] == "pub"
    at = closing(words, at) + 1 if words[at][0] == "(" else at
    return at + 1 < len(words) and words[at + 1][0] == ":"


def closing(words, at):
    depth = 0
    for index in range(at, len(words)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(words[index][0], 0)
        if depth == 0:
            return index
    return len(words) - 1


def paths(words):
    """(segments, line, depth of inline modules) of each path of this crate."""
    inline, depth, at = [], 0, 0
    while at < len(words):
        word, line = words[at]
        if word == "mod" and at + 2 < len(words) and words[at + 2][0] == "{":
            inline.append(depth)
        elif word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
            if inline and inline[-1] == depth:
                inline.pop()
        elif word in ("crate", "super", "self") and words[at + 1 : at + 2] and words[at + 1][0] == "::":
            if at == 0 or words[at - 1][0] != "::":
                for segments in tree(words, at):
                    yield segments, line, len(inline)
        at += 1


def tree(words, at):
    """The paths of a `use` tree, or the one path, that begins here."""
    segments = []
    while at < len(words):
        word = words[at][0]
        if word == "{":
            end, at = closing(words, at), at + 1
            while at < end:
                for rest in tree(words, at):
                    yield segments + rest
                while at < end and words[at][0] != ",":
                    at = closing(words, at) if words[at][0] == "{" else at
                    at += 1
                at += 1
            return
        if not re.match(r"\w", word):
            break
        segments.append(word)
        if at + 1 >= len(words) or words[at + 1][0] != "::":
            break
        at += 2
    yield segments


def arrows(source):
    """{room: {room that it names: where}}"""
    files, tests = {}, set()
    for path in sorted(source.rglob("*.rs")):
        module = path.relative_to(source).with_suffix("").parts
        if module in (("lib",), ("main",)) or module[0] == "bin":
            module = ()
        words, test_modules = without_tests(list(tokens(path.read_text())))
        files[path] = (module, words)
        tests.update(module + (name,) for name in test_modules)
    rooms = {module[0] for module, _ in files.values() if module}
    graph = {room: {} for room in rooms}
    for path, (module, words) in files.items():
        if not module or any(module[:length] in tests for length in range(1, len(module) + 1)):
            continue
        for segments, line, inline in paths(words):
            ups = 0
            while ups < len(segments) and segments[ups] == "super":
                ups += 1
            above = len(module) + inline - ups
            named = segments[1:] if segments[0] == "crate" else segments[ups:] if above == 0 else module
            if named and named[0] in rooms and named[0] != module[0]:
                graph[module[0]].setdefault(named[0], f"{path}:{line}: {'::'.join(segments)}")
    return graph


def circles(graph):
    """The shortest circle through each room that is in one; each circle once."""
    seen = set()
    for start in sorted(graph):
        before, queue = {}, deque([start])
        while queue and start not in before:
            room = queue.popleft()
            for other in sorted(graph[room]):
                if other not in before:
                    before[other] = room
                    queue.append(other)
        if start in before:
            circle = [start]
            while before[circle[-1]] != start:
                circle.append(before[circle[-1]])
            circle = [start] + circle[:0:-1] + [start]
            if frozenset(circle) not in seen:
                seen.add(frozenset(circle))
                yield circle


def main():
    failed = False
    for crate in CRATES:
        source = Path(crate) / "src"
        graph = arrows(source) if source.is_dir() else {}
        for circle in circles(graph):
            failed = True
            print(f"directions: a circle in {crate}: {' → '.join(circle)}", file=sys.stderr)
            for room, other in zip(circle, circle[1:]):
                print(f"    {graph[room][other]}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
