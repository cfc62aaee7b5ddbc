"""A read-only registry (distribution API v2) on the loopback interface, serving a layout."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def serving(layout: Path, image: dict[str, Any]) -> Iterator[str]:
    """Serve the blobs of ``layout``; ``image`` is the descriptor behind every tag.

    Yields ``127.0.0.1:<port>``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

        def _answer(self, *, with_body: bool) -> None:
            parts = self.path.strip("/").split("/")
            if parts == ["v2"]:
                self._send(b"{}", "application/json", with_body)
                return
            digest = parts[-1] if parts[-1].startswith("sha256:") else image["digest"]
            path = layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
            if parts[-2] not in ("manifests", "blobs") or not path.exists():
                self.send_error(404)
                return
            data = path.read_bytes()
            kind = "application/octet-stream"
            if parts[-2] == "manifests":
                kind = json.loads(data).get("mediaType", image["mediaType"])
            self._send(data, kind, with_body, digest)

        def _send(self, data: bytes, kind: str, with_body: bool, digest: str = "") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if with_body:
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
