#!/usr/bin/env python3
"""Fails when code has names made of words that say nothing to an engineer who has not met them here.

A name is read by its parts: `was_told`, `ToldCost` and `told` are uses of `told`. Comments, texts and tests are left alone.
"""

import re
import sys
from pathlib import Path

from rust_source import files_of

CRATES = ["shared", "proxy", "admin", "admin/cli", "bench"]
# Parts of names, and what constants do not begin with: every bound is `MAX_…` or `MIN_…`.
WORDS = {"told", "kept", "said", "errand", "beside", "farewell", "untold", "thing"}
CONSTANTS = {"MOST", "LONGEST", "LARGEST", "DEEPEST", "SHORTEST", "SMALLEST", "LEAST", "FEWEST"}
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def is_foreign(name):
    """Whether a name has a word that the trade does not use."""
    begins = name.split("_")[0]
    return bool({part.lower() for part in PART.findall(name)} & WORDS) or (name.isupper() and begins in CONSTANTS)


def main():
    failed = 0
    for crate in CRATES:
        for file in files_of(crate) if (Path(crate) / "src").is_dir() else []:
            for name, line in file.words:
                if is_foreign(name):
                    failed = 1
                    print(f"words: {file.path}:{line}: `{name}`: name it by the word of the trade", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
