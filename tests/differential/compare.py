"""Sends every case to both gateways and holds what differs against differences.toml."""

import argparse
import fnmatch
import json
import sys

import cases
import gateways
import normal
from listed import Listed
from upstream import Upstream


def told(gateway, case, upstream):
    upstream.begin(case["answer"])
    status, headers, body = gateway.send(case, upstream.origin)
    return {"request": normal.request(upstream.taken()), "answer": normal.answer(case["path"], status, headers, body)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", metavar="CASES", help="print all of what was sent and answered, of these cases")
    parser.add_argument("--draft", action="store_true", help="print what is not listed as a beginning of TOML")
    arguments = parser.parse_args()
    chosen = [case for case in cases.ALL if fnmatch.fnmatchcase(case["name"], arguments.show or "*")]
    listed, upstream, unlisted, equal = Listed("differences.toml"), Upstream(), [], 0
    ours = gateways.ours()
    with gateways.Theirs() as theirs:
        for case in chosen:
            pair = told(ours, case, upstream), told(theirs, case, upstream)
            if arguments.show:
                print(f"== {case['name']}\n-- ours\n{json.dumps(pair[0], indent=1)}\n-- theirs\n{json.dumps(pair[1], indent=1)}")
            found = list(normal.differences(*pair))
            equal += not found
            unlisted += [(case["name"], *one) for one in found if not listed.explains(case["name"], one[0])]
    stale = list(listed.stale([case["name"] for case in chosen]))
    for name, place, mine, other in unlisted:
        if arguments.draft:
            print(f'[[difference]]\ncases = "{name}"\nplaces = "{place}"\n# ours {json.dumps(mine)}\n# theirs {json.dumps(other)}\nreason = ""\n')
        else:
            print(f"not listed: {name} {place}\n    ours   {json.dumps(mine)}\n    theirs {json.dumps(other)}")
    for pattern, reason in stale:
        print(f"no longer differs: {pattern} ({reason})")
    verdict = "FAIL" if unlisted or stale else "PASS"
    print(f"{verdict} differential: {len(chosen)} requests, {equal} the same, {len(listed.rules)} listed differences, "
          f"{len(unlisted)} not listed, {len(stale)} no longer there")
    sys.exit(1 if unlisted or stale else 0)


if __name__ == "__main__":
    main()
