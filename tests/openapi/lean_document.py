"""The document with each parameter that many operations share left at two operations of each method.

One reader in the gateway reads each of them, wherever it is sent: headers, `dry_run`, filters of logs. A walk that combines thirty
headers with each other at fifty operations takes more than half of its time for a tenth of its requests. The thorough walk has them
everywhere.

    lean_document.py < openapi.json > lean.json
"""

import json
import sys
from collections import Counter

METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS_WITH_EACH = 2
# From so many operations on a parameter of the query is of those that are read at one place.
OPERATIONS_OF_A_SHARED_ONE = 10


def lean(document):
    def resolved(parameter):
        while "$ref" in parameter:
            target = document
            for step in parameter["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            parameter = target
        return parameter

    def what(method, parameter):
        return method, parameter["in"], parameter["name"], json.dumps(parameter.get("schema"), sort_keys=True)

    operations = [
        (method, item[method]) for item in document["paths"].values() for method in METHODS if "parameters" in item.get(method, {})
    ]
    sharing = Counter(
        what(method, resolved(one)) for method, operation in operations for one in operation["parameters"]
    )
    seen = Counter()

    def stays(method, parameter):
        parameter = resolved(parameter)
        known = what(method, parameter)
        is_shared = parameter["in"] == "header" or parameter["name"] == "dry_run" or (
            parameter["in"] == "query" and sharing[known] >= OPERATIONS_OF_A_SHARED_ONE
        )
        if not is_shared or parameter.get("required"):
            return True
        seen[known] += 1
        return seen[known] <= OPERATIONS_WITH_EACH

    for method, operation in operations:
        operation["parameters"] = [one for one in operation["parameters"] if stays(method, one)]
    return document


if __name__ == "__main__":
    json.dump(lean(json.load(sys.stdin)), sys.stdout)
