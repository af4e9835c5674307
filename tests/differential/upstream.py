"""A provider of every wire on loopback: keeps what it was sent, and answers as the case says."""

import http.server
import json
import threading
import urllib.parse

import fixtures

# The end of a path, and the wire that is spoken there.
WIRES = [
    (":generateContent", "gemini"), (":streamGenerateContent", "gemini"),
    (":embedContent", "gemini embeddings"), (":batchEmbedContents", "gemini batch embeddings"),
    ("/converse", "converse"), ("/converse-stream", "converse"), ("/invoke", "titan embeddings"),
    ("/v2/chat", "cohere"), ("/v2/embed", "cohere embeddings"),
    ("/messages/count_tokens", "count"), ("/messages", "messages"),
    ("/chat/completions", "chat"), ("/completions", "completions"), ("/embeddings", "openai embeddings"),
]
EMBEDDINGS = {
    "gemini embeddings": "gemini", "gemini batch embeddings": "gemini_batch", "titan embeddings": "titan",
    "cohere embeddings": "cohere", "openai embeddings": "openai",
}


class Upstream:
    def __init__(self):
        self.calls, self.answer, self.lock = [], "plain", threading.Lock()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                upstream._serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def begin(self, answer):
        with self.lock:
            self.calls, self.answer = [], answer

    def taken(self):
        with self.lock:
            return list(self.calls)

    def _serve(self, request):
        body = _body(request)
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            sent = json.loads(body)
        except ValueError:
            sent = body.decode("utf-8", "replace")
        path = urllib.parse.unquote(url.path)
        with self.lock:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.calls.append({"method": request.command, "path": path, "query": query, "headers": headers, "body": sent})
            answer = self.answer
        wire = next((wire for ending, wire in WIRES if path.endswith(ending)), None)
        _reply(request, *_answer(wire, path, query, sent, answer))


def _body(request):
    if request.headers.get("transfer-encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("content-length") or 0))
    body = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


def _answer(wire, path, query, sent, answer):
    """Status, headers and bytes."""
    if wire is None:
        return 404, {}, b'{"error":{"message":"no such path"}}'
    if wire in EMBEDDINGS:
        return 200, {}, json.dumps(fixtures.embeddings(EMBEDDINGS[wire], sent)).encode()
    if wire == "count":
        return 200, {}, b'{"input_tokens": 7}'
    status, headers, body = fixtures.plain(wire, answer)
    is_stream = "stream" in path.rsplit("/", 1)[-1].lower() or (isinstance(sent, dict) and sent.get("stream") is True)
    if status != 200 or not is_stream:
        return status, headers, body.encode()
    if wire == "converse":
        return 200, {"content-type": "application/vnd.amazon.eventstream"}, fixtures.frames(wire, answer)
    if wire == "gemini" and query.get("alt") != "sse":
        return 200, {}, fixtures.json_list(wire, answer)
    return 200, {"content-type": "text/event-stream"}, fixtures.server_sent(wire, answer)


def _reply(request, status, headers, body):
    request.send_response(status)
    for name, value in {"content-type": "application/json", **headers}.items():
        request.send_header(name, value)
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
