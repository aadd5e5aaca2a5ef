"""An endpoint for embeddings, as other memories ask for: `python benchmarks/peers/wordllama_endpoint.py PORT`.

It answers with WordLlama's vectors of 256 numbers, which afterword uses without an endpoint.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import wordllama

DIMENSION = 256


class _Vectors(BaseHTTPRequestHandler):
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors: list[Any] = [[float(number) for number in row] for row in self.model.embed(texts, norm=True)]
        if asked.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{DIMENSION}f", *vector)).decode() for vector in vectors]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        body = json.dumps({"object": "list", "model": "wordllama", "data": data, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def started() -> str:
    """Start the endpoint in a thread of this process, and return its address."""
    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), _Vectors)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{endpoint.server_port}/v1"


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Vectors).serve_forever()
