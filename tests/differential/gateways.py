"""The two gateways, and how each is told the provider, its key and its place."""

import http.client
import os
import socket
import subprocess
import time
import urllib.parse

SERVER = "node_modules/@portkey-ai/gateway/build/start-server.js"

# What follows the origin in a provider's own address.
PREFIXES = {"openai": "/v1", "anthropic": "/v1", "mistral-ai": "/v1", "groq": "/v1", "deepseek": "/v1", "azure-openai": "/openai"}
# Fields of an account that are told as headers, without the prefix of a gateway.
ACCOUNTS = {
    "bedrock": {
        "aws-access-key-id": "AKIADIFFERENTIAL", "aws-secret-access-key": "secret", "aws-region": "us-east-1",
    },
    "azure-openai": {
        "azure-resource-name": "acme", "azure-deployment-id": "prod", "azure-api-version": "2024-10-21",
    },
}


class Gateway:
    """One of the two: its address, the prefix of its headers, and what every request tells it."""

    def __init__(self, base_url, prefix, always):
        self.base_url, self.prefix, self.always = base_url, prefix, always

    def send(self, case, upstream):
        """Status, headers and body of the answer."""
        headers = {"content-type": "application/json", **self.always}
        headers[f"x-{self.prefix}-provider"] = case["provider"]
        headers[f"x-{self.prefix}-custom-host"] = upstream + PREFIXES.get(case["provider"], "")
        account = ACCOUNTS.get(case["provider"], {})
        if "aws-region" not in account:
            headers["authorization"] = "Bearer sk-differential"
        for name, value in {**account, **case.get("headers", {})}.items():
            headers[f"x-{self.prefix}-{name}"] = value
        url = urllib.parse.urlsplit(self.base_url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        try:
            connection.request("POST", url.path + case["path"], case["text"].encode(), headers)
            answer = connection.getresponse()
            return answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), answer.read()
        finally:
            connection.close()


def ours():
    always = {"x-gateway-api-key": os.environ["GATEWAY_WORKSPACE_KEY"]}
    return Gateway(os.environ["GATEWAY_BASE_URL"], "gateway", always)


class Theirs:
    """Runs the public gateway for as long as the block lasts."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [os.environ.get("NODE", "node"), "--import", "./mutable.mjs", SERVER, f"--port={port}", "--headless"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            if self.process.poll() is not None:
                raise SystemExit("differential: the public gateway did not start")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return Gateway(f"http://127.0.0.1:{port}/v1", "portkey", {})
            time.sleep(0.1)
        raise SystemExit("differential: the public gateway does not listen")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
