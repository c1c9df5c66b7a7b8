"""A small Hugging Face hub on localhost: one repository, served from a folder, requests recorded."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves folder as repo at COMMIT (branch main); requests holds the paths asked for."""

    def __init__(self, repo: str, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repo, self.folder = repo, folder
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(send_body=True)

    def do_HEAD(self) -> None:
        self.answer(send_body=False)

    def answer(self, send_body: bool) -> None:
        path = self.path.split("?")[0]
        self.server.requests.append(path)
        body = self.find(path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.send_header("ETag", f'"{hashlib.sha1(body or b"").hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if body is None:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        if send_body and body:
            self.wfile.write(body)

    def find(self, path: str) -> bytes | None:
        repo, folder = self.server.repo, self.server.folder
        files = [file for file in folder.rglob("*") if file.is_file()]
        names = {file.relative_to(folder).as_posix(): file for file in files}
        if path in (f"/api/models/{repo}/revision/main", f"/api/models/{repo}"):
            siblings = [{"rfilename": name} for name in names]
            return json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings}).encode()
        if path == f"/api/models/{repo}/tree/{COMMIT}":
            entries = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": name}
                for name, file in names.items()
            ]
            return json.dumps(entries).encode()
        name = path.removeprefix(f"/{repo}/resolve/{COMMIT}/")
        return names[name].read_bytes() if name in names else None

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def hub(repo: str, folder: Path) -> Iterator[Hub]:
    """Run a hub until the block ends."""
    server = Hub(repo, folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
