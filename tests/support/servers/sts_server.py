"""AWS STS for tests: it keeps the policies that roles are assumed with, and refuses what AWS refuses."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
<SessionToken>token-{number}</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
</AssumeRoleResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleResponse>"""
_ERROR = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{code}</Code><Message>refused</Message></Error><RequestId>r</RequestId></ErrorResponse>"""
_TAKEN = re.compile(r"[\t\n\r\u0020-\u00ff]+")
_LONGEST = 2048
_SESSION = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)


class StsServer:
    """Answers AssumeRole on a free port."""

    def __init__(self) -> None:
        self.policies: list[Any] = []
        """Of each role that was assumed, in order."""
        self.sessions: list[str] = []
        """The names of their sessions."""
        self.refusing = ""
        """The code of the error that everybody gets, if any."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                assert form["Action"] == ["AssumeRole"]
                status, body = outer._answer(form["Policy"][0], form["RoleSessionName"][0])
                self.send_response(status)
                self.send_header("content-type", "text/xml")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.uri = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, policy: str, session: str) -> tuple[int, bytes]:
        is_taken = _TAKEN.fullmatch(policy) and len(policy) <= _LONGEST and _SESSION.fullmatch(session)
        if self.refusing or not is_taken:
            return 400, _ERROR.format(code=self.refusing or "ValidationError").encode()
        self.policies.append(json.loads(policy))
        self.sessions.append(session)
        return 200, _ANSWER.format(number=len(self.policies)).encode()
