"""What the checks of `.ci` read of Rust sources: words without comments, literals and tests, and the paths they name."""

import re
from dataclasses import dataclass
from pathlib import Path

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
                for segments, _ in tree(words, at):
                    yield segments, line, len(inline)
        at += 1


def tree(words, at):
    """The paths of a `use` tree, or the one path, that begins here, each with the name it has here."""
    segments = []
    while at < len(words):
        word = words[at][0]
        if word == "{":
            end, at = closing(words, at), at + 1
            while at < end:
                for rest, name in tree(words, at):
                    yield segments + rest, name
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
    # `{self, …}` is what it stands in.
    segments = segments[:-1] if segments[-1:] == ["self"] else segments
    if segments:
        has_name = at + 2 < len(words) and words[at + 1][0] == "as"
        yield segments, words[at + 2][0] if has_name else segments[-1]


@dataclass
class SourceFile:
    """One file that reaches a program. `module` is its path in the crate: ("walk", "guards")."""

    path: Path
    module: tuple
    words: list


def files_of(crate):
    """The files of a crate that are no test."""
    source = Path(crate) / "src"
    files, tests = [], set()
    for path in sorted(source.rglob("*.rs")):
        module = path.relative_to(source).with_suffix("").parts
        if module in (("lib",), ("main",)) or module[0] == "bin":
            module = ()
        words, test_modules = without_tests(list(tokens(path.read_text())))
        files.append(SourceFile(path, module, words))
        tests.update(module + (name,) for name in test_modules)
    is_test = lambda module: any(module[:length] in tests for length in range(1, len(module) + 1))
    return [file for file in files if not is_test(file.module)]


def use_trees(words):
    """The segments of every path that a `use` brings in, and the name it has here."""
    for at, (word, _) in enumerate(words):
        if word == "use":
            yield from tree(words, at + 1)
