"""Google's token exchange and metadata server for tests: it keeps the boundaries that tokens are asked for with."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote

MACHINE_TOKEN = "token-of-the-machine"  # noqa: S105


class GoogleStsServer:
    """Answers both on a free port."""

    def __init__(self) -> None:
        self.boundaries: list[Any] = []
        """Of each token that was given, in order."""
        self.sources: list[str] = []
        """The tokens that were exchanged."""
        self.lifetime_s: int | None = 1800
        self.refusing = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.path == "/computeMetadata/v1/instance/service-accounts/default/token"
                assert self.headers["Metadata-Flavor"] == "Google"
                self._answer({"access_token": MACHINE_TOKEN, "expires_in": 3000, "token_type": "Bearer"})

            def do_POST(self) -> None:
                form = {
                    k: v[0] for k, v in parse_qs(self.rfile.read(int(self.headers["content-length"])).decode()).items()
                }
                assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
                assert form["subject_token_type"] == form["requested_token_type"]
                outer.sources.append(form["subject_token"])
                outer.boundaries.append(json.loads(unquote(form["options"]))["accessBoundary"])
                lifetime = {} if outer.lifetime_s is None else {"expires_in": outer.lifetime_s}
                self._answer({"access_token": f"downscoped-{len(outer.boundaries)}", **lifetime})

            def _answer(self, body: dict[str, Any]) -> None:
                text = json.dumps(body).encode()
                self.send_response(400 if outer.refusing else 200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
