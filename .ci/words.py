#!/usr/bin/env python3
"""Fails when code gets more names made of words that say nothing to an engineer who has not met them here.

A name is read by its parts: `was_told`, `ToldCost` and `told` are uses of `told`. Comments, texts and tests are left alone.
How many uses of each word a crate has stands in `known_words.json` and may only become less; `--write` writes it anew.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from rust_source import files_of

CRATES = ["shared", "proxy", "admin", "bench"]
KNOWN = Path(".ci/known_words.json")
# Parts of names, and whole names of constants.
WORDS = {"told", "kept", "said", "errand", "beside", "farewell", "untold", "thing"}
CONSTANTS = {"MOST", "LONGEST", "SHORTEST", "LEAST"}
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def uses(crate):
    """{word: how often} and {word: a place}"""
    counts, places = Counter(), {}
    for file in files_of(crate):
        for name, line in file.words:
            found = {part.lower() for part in PART.findall(name)} & WORDS | {name} & CONSTANTS
            for word in found:
                counts[word] += 1
                places[word] = f"{file.path}:{line}: {name}"
    return counts, places


def without_empty(counts):
    return {crate: words for crate, words in counts.items() if words}


def main():
    found = {crate: uses(crate) for crate in CRATES if (Path(crate) / "src").is_dir()}
    counts = {crate: dict(sorted(words.items())) for crate, (words, _) in found.items()}
    if sys.argv[1:] == ["--write"]:
        KNOWN.write_text(json.dumps(counts, indent=1) + "\n")
        return 0
    known = json.loads(KNOWN.read_text()) if KNOWN.is_file() else {}
    failed = 0
    for crate, words in counts.items():
        for word, count in words.items():
            most = known.get(crate, {}).get(word, 0)
            if count > most:
                failed = 1
                print(
                    f"words: {crate} has {count} names with `{word}`, {most} are known, among them {found[crate][1][word]}: "
                    "name it by the word of the trade",
                    file=sys.stderr,
                )
    if not failed and without_empty(known) != without_empty(counts):
        failed = 1
        print("words: fewer such names are left than were: run .ci/words.py --write", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
