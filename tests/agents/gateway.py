"""The gateway and its mock provider as the tests of agents use them: stored providers, keys, scripts and logs."""

import json
import os
import time
import urllib.error
import urllib.request

BASE_URL = os.environ["GATEWAY_BASE_URL"].rstrip("/")
MOCK_URL = os.environ["MOCK_PROVIDER_URL"].rstrip("/")
ADMIN_KEY = os.environ["GATEWAY_ADMIN_KEY"]
# What `until` waits at most for what another process does in the background.
PATIENCE = 30


def ask(method, url, body=None, key=None):
    head = {"content-type": "application/json"} | ({"x-gateway-api-key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, head, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def administer(method, path, body=None):
    status, answer = ask(method, BASE_URL + path, body, ADMIN_KEY)
    assert status == 200, f"{method} {path}: {status} {answer}"
    return answer


def until(what, found):
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.1)
    return value


def store(workspace, slug, kind):
    """A provider of the workspace, once its models are listed."""
    administer("POST", "/integrations", {
        "name": slug, "slug": slug, "ai_provider_id": kind, "key": "sk-stored", "default_provider_slug": slug,
        "workspace_id": workspace, "configurations": {"custom_host": MOCK_URL},
    })
    listed = f"{BASE_URL}/models?provider={slug}&limit=1"
    probe = new_key(workspace, f"probe of {slug}")
    until(f"models of {slug}", lambda: (ask("GET", listed, key=probe["key"])[1].get("total") or 0) > 0)


def new_key(workspace, name):
    return administer("POST", "/api-keys/workspace/service", {
        "name": name, "workspace_id": workspace, "scopes": ["completions.write", "models.list"],
    })


def script(entries):
    status, answer = ask("POST", f"{MOCK_URL.removesuffix('/v1')}/__mock/script", entries)
    assert status == 200, answer


def unused(word):
    """Entries of the script for this word that no request has come for."""
    _, entries = ask("GET", f"{MOCK_URL.removesuffix('/v1')}/__mock/script")
    return [entry for entry in entries if word in entry["contains"] and entry["times"] == 1]


def logs(key):
    """Those of this key, oldest first."""
    found = administer("GET", f"/logs?api_key_ids={key}&page_size=100")
    return list(reversed(found["data"]))
