"""Runs the deterministic checks of both gateways on the same texts, as hooks of a config, and holds what differs against
guardrail_differences.toml: the verdict, whether there was an error, what was found, and what the provider was sent.

The public gateway ships its checks in one file, so they are asked as its users ask them: over HTTP."""

import argparse
import fnmatch
import http.server
import json
import sys
import threading
import urllib.parse
import http.client

import gateways
import guardrail_cases
from listed import Listed

# What a check tells beside its verdict that the contract names; explanations are each gateway's own words.
TOLD = {
    "wordCount": ["wordCount"], "sentenceCount": ["sentenceCount"], "characterCount": ["characterCount"],
    "contains": ["foundWords", "missingWords"], "jsonKeys": ["presentKeys", "missingKeys", "matchedJson"],
    "jsonSchema": ["matchedJson"],
}


class Provider:
    """Answers every chat with one text, and keeps what it was sent."""

    def __init__(self):
        self.text, self.sent, provider = "", None, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                provider.sent = json.loads(body)
                answer = json.dumps({
                    "id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
                    "choices": [{"index": 0, "message": {"role": "assistant", "content": provider.text}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def told(gateway, case, provider):
    provider.text, provider.sent = (case["text"] if case["side"] == "output" else "Hello"), None
    check = {"id": f"default.{case['check']}", "parameters": case["parameters"]}
    hooks = [{"id": "h", "type": "guardrail", "checks": [check]}]
    name = "before_request_hooks" if case["side"] == "input" else "after_request_hooks"
    config = {"provider": "openai", "api_key": "sk-differential", "custom_host": provider.url, name: hooks}
    headers = {"content-type": "application/json", **gateway.always, f"x-{gateway.prefix}-config": json.dumps(config)}
    if "metadata" in case["more"]:
        headers[f"x-{gateway.prefix}-metadata"] = json.dumps(case["more"]["metadata"])
    said = case["text"] if case["side"] == "input" else "Hello"
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": said}]})
    url = urllib.parse.urlsplit(gateway.base_url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    try:
        connection.request("POST", url.path + "/chat/completions", body.encode(), headers)
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
    finally:
        connection.close()
    return projected(case, status, text, name, provider.sent)


def projected(case, status, text, name, sent):
    """What is compared."""
    try:
        results = json.loads(text)["hook_results"][name][0]["checks"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        return {"status": status, "refused": True}
    data = results.get("data") or {}
    shown = {
        "status": status, "verdict": results["verdict"], "error": bool(results.get("error")),
        "transformed": bool(results.get("transformed")), "sent": (sent or {}).get("messages"),
    }
    for field in TOLD.get(case["check"], []):
        shown[field] = data.get(field) if isinstance(data, dict) else None
    return shown


def differences(ours, theirs):
    for place in sorted({*ours, *theirs}):
        if ours.get(place) != theirs.get(place):
            yield place, ours.get(place), theirs.get(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", metavar="CASES", help="print what both told, of these cases")
    arguments = parser.parse_args()
    chosen = [case for case in guardrail_cases.ALL if fnmatch.fnmatchcase(case["name"], arguments.show or "*")]
    listed, provider, unlisted, equal = Listed("guardrail_differences.toml"), Provider(), [], 0
    ours = gateways.ours()
    with gateways.Theirs() as theirs:
        for case in chosen:
            pair = told(ours, case, provider), told(theirs, case, provider)
            if arguments.show:
                print(f"== {case['name']}\n   ours   {json.dumps(pair[0])}\n   theirs {json.dumps(pair[1])}")
            found = list(differences(*pair))
            equal += not found
            unlisted += [(case["name"], *one) for one in found if not listed.explains(case["name"], one[0])]
    stale = list(listed.stale([case["name"] for case in chosen]))
    for name, place, mine, other in unlisted:
        print(f"not listed: {name} {place}\n    ours   {json.dumps(mine)[:200]}\n    theirs {json.dumps(other)[:200]}")
    for pattern, reason in stale:
        print(f"no longer differs: {pattern} ({reason})")
    verdict = "FAIL" if unlisted or stale else "PASS"
    print(f"{verdict} guardrails: {len(chosen)} checks, {equal} the same, {len(listed.rules)} listed differences, "
          f"{len(unlisted)} not listed, {len(stale)} no longer there")
    sys.exit(1 if unlisted or stale else 0)


if __name__ == "__main__":
    main()
