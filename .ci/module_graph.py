#!/usr/bin/env python3
"""Fails when modules beside each other depend on each other in a circle, at any level of folders.

Reads every path that begins with `crate`, `super` or `self` in code that is not a test, `use` trees included, and draws
an arrow between the two modules of one folder that it leads from and to; a name that a module above hands on is followed to
where it comes from. Methods that call each other by `self.` across files are arrows too: nobody sees them in a `use`.
Also counts in how many files a type has an `impl`.

What stands in `known_tangles.json` is known and may only become less; `--write` writes it anew.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from rust_source import closing, files_of, paths, use_trees

CRATES = ["shared", "proxy", "admin", "admin/cli", "bench"]
KNOWN = Path(".ci/known_tangles.json")
# Of one type: files with an `impl` of it, and those of them that are not in its own folder.
MAX_FILES, MAX_OUTSIDE = 8, 4
MAX_HOPS = 8


class Crate:
    def __init__(self, name):
        self.name, self.files = name, files_of(name)
        self.modules = {file.module[:length] for file in self.files for length in range(len(file.module) + 1)}
        # What each module calls something that stands elsewhere.
        self.handed_on = defaultdict(dict)
        for file in self.files:
            for segments, name in use_trees(file.words):
                if found := self.absolute(file.module, segments):
                    self.handed_on[file.module].setdefault(name, found)

    def absolute(self, module, segments):
        """From the crate's root on; none of what is another crate's."""
        if segments[:1] == ["crate"]:
            return tuple(segments[1:])
        ups = next((at for at, word in enumerate(segments) if word not in ("self", "super")), len(segments))
        if ups:
            above = len(module) - segments[:ups].count("super")
            return module[: max(above, 0)] + tuple(segments[ups:])
        return module + tuple(segments) if module + tuple(segments[:1]) in self.modules else None

    def home(self, path):
        """The module in which stands what a path names."""
        for _ in range(MAX_HOPS):
            length = max(length for length in range(len(path) + 1) if path[:length] in self.modules)
            module, rest = path[:length], path[length:]
            if not rest or rest[0] not in self.handed_on[module]:
                return module
            path = self.handed_on[module][rest[0]] + rest[1:]
        return module

    def arrows(self):
        """{folder: {module in it: {module beside it that it names: where}}}"""
        graphs = defaultdict(lambda: defaultdict(dict))
        for file in self.files:
            for segments, line, inline in paths(file.words):
                ups = segments.count("super")
                segments = segments[min(inline, ups) :] if inline and segments[0] == "super" else segments
                if not segments or (inline and segments[0] == "self"):
                    continue
                segments = segments if segments[0] in ("crate", "super", "self") else ["self", *segments]
                if path := self.absolute(file.module, segments):
                    self.draw(graphs, file.module, self.home(path), f"{file.path}:{line}: {'::'.join(segments)}")
        for caller, other, where in hidden_arrows(self):
            self.draw(graphs, caller, other, where)
        return graphs

    def draw(self, graphs, module, other, where):
        common = 0
        while common < min(len(module), len(other)) and module[common] == other[common]:
            common += 1
        if common < min(len(module), len(other)):
            graphs[module[:common]][module[common]].setdefault(other[common], where)


def impls(file):
    """(type, is it an own `impl` and not of a trait, where its braces are) of each one."""
    words = file.words
    for at, (word, _) in enumerate(words):
        is_item = at == 0 or words[at - 1][0] in ("}", ";", "{", "]", "unsafe")
        if word != "impl" or not is_item:
            continue
        start = next((place for place in range(at, len(words)) if words[place][0] == "{"), len(words))
        head, depth = [], 0
        for word, _ in words[at + 1 : start]:
            depth += (word == "<") - (word == ">")
            if depth == 0 and word not in (">", "<"):
                head.append(word)
        if "where" in head:
            head = head[: head.index("where")]
        subject = head[head.index("for") + 1 :] if "for" in head else head
        names = [word for word in subject if word[:1].isalpha() and word not in ("dyn", "mut")]
        if names:
            yield names[-1], "for" not in head, (start, closing(words, start))


def types_of(crate):
    """{type: [(file, where its braces are)]} of `impl`s that are not of traits, of types that the crate has."""
    own = {}
    for file in crate.files:
        for at, (word, _) in enumerate(file.words[:-1]):
            if word in ("struct", "enum", "union"):
                own.setdefault(file.words[at + 1][0], []).append(file.module)
    found = defaultdict(list)
    for file in crate.files:
        for name, is_own, braces in impls(file):
            # A name that several modules use for types of their own tells nothing.
            if is_own and len(own.get(name, [])) == 1:
                found[name].append((file, braces))
    return {name: (own[name][0], places) for name, places in found.items()}


def hidden_arrows(crate):
    """Calls by `self.` of a method that stands in another file."""
    for _, places in types_of(crate).values():
        at_home = {}
        for file, (start, end) in places:
            for place in range(start, end):
                if file.words[place][0] == "fn":
                    at_home.setdefault(file.words[place + 1][0], file.module)
        for file, (start, end) in places:
            for place in range(start, end - 3):
                called = [word for word, _ in file.words[place : place + 4]]
                if called[:2] == ["self", "."] and called[3] == "(" and called[2] in at_home:
                    if at_home[called[2]] != file.module:
                        yield file.module, at_home[called[2]], f"{file.path}:{file.words[place][1]}: self.{called[2]}()"


def knots(graph):
    """Sets of modules that all reach each other (Tarjan's strongly connected components of more than one)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, {})):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            knot = []
            while not knot or knot[-1] != node:
                knot.append(stack.pop())
            if len(knot) > 1:
                found.append(sorted(knot))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def circle(graph, knot):
    """A shortest way round, from the first of a knot."""
    start, before, queue = knot[0], {}, [knot[0]]
    while start not in before:
        module = queue.pop(0)
        for other in sorted(set(graph[module]) & set(knot)):
            if other not in before:
                before[other] = module
                queue.append(other)
    way = [start]
    while before[way[-1]] != start:
        way.append(before[way[-1]])
    return [start, *way[:0:-1], start]


def main():
    circles, spread, how = {}, {}, {}
    for name in CRATES:
        if not (Path(name) / "src").is_dir():
            continue
        crate = Crate(name)
        for folder, graph in sorted(crate.arrows().items()):
            place = "/".join([name, *folder])
            for knot in knots(graph):
                circles.setdefault(place, []).append(knot)
                way = circle(graph, knot)
                lines = [f"    {graph[module][other]}" for module, other in zip(way, way[1:])]
                how[place, tuple(knot)] = "\n".join([" → ".join(way), *lines])
        for kind, (home, places) in sorted(types_of(crate).items()):
            files = {file.module for file, _ in places}
            outside = sum(module[: len(home)] != home and module[:-1] != home[:-1] for module in files)
            if len(files) > MAX_FILES or outside > MAX_OUTSIDE:
                spread[f"{name}: {kind}"] = [len(files), outside]
    if sys.argv[1:] == ["--write"]:
        KNOWN.write_text(json.dumps({"circles": circles, "spread": spread}, indent=1, sort_keys=True) + "\n")
        return 0
    known = json.loads(KNOWN.read_text()) if KNOWN.is_file() else {"circles": {}, "spread": {}}
    return compare(known, circles, spread, how)


def compare(known, circles, spread, how):
    """Whether nothing is worse than what is known, and what is known is still so."""
    failed = 0
    for place, found in circles.items():
        for knot in found:
            if not any(set(knot) <= set(old) for old in known["circles"].get(place, [])):
                failed = 1
                print(f"directions: a circle in {place}: {how[place, tuple(knot)]}", file=sys.stderr)
    for kind, counts in spread.items():
        old = known["spread"].get(kind, [MAX_FILES, MAX_OUTSIDE])
        if counts[0] > max(old[0], MAX_FILES) or counts[1] > max(old[1], MAX_OUTSIDE):
            failed = 1
            print(
                f"directions: {kind} has an impl in {counts[0]} files, {counts[1]} of them outside of its folder: "
                f"at most {max(old[0], MAX_FILES)} and {max(old[1], MAX_OUTSIDE)}",
                file=sys.stderr,
            )
    if not failed and (circles, spread) != (known["circles"], known["spread"]):
        failed = 1
        print("directions: less is tangled than was: run .ci/module_graph.py --write", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
