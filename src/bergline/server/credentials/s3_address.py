"""The addresses of buckets and objects on one S3 endpoint, in path style and with the bucket before the host."""

import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from bergline.errors import InvalidInputError, RefusedError

_REGION = re.compile(r"[a-z0-9-]{1,64}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_PORTS = {"http": 80, "https": 443}
_SAFE = "-._~"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
_DOTS = {".", ".."}


class S3Address(msgspec.Struct, frozen=True):
    """A request's address, taken apart; the key is decoded, and empty for the bucket itself."""

    scheme: str
    host: str
    bucket: str
    key: str
    query: dict[str, str]
    is_path_style: bool

    @property
    def uri(self) -> str:
        """The address, made from its parts: what was checked is what is signed."""
        path = f"/{self.bucket}" if self.is_path_style else ""
        path = f"{path}/{quote(self.key, safe=f'{_SAFE}/')}" if self.key or not path else path
        pairs = (f"{quote(name, safe=_SAFE)}={quote(value, safe=_SAFE)}" for name, value in self.query.items())
        query = "&".join(pairs)
        return f"{self.scheme}://{self.host}{path}{'?' if query else ''}{query}"


class S3Endpoint(msgspec.Struct, frozen=True):
    """Where the server's S3 is: at `url`, or Amazon's; `region` is what requests are signed for."""

    url: str | None = None
    region: str | None = None

    def region_for(self, requested: str) -> str:
        """The server's region, or the client's where the server has none."""
        if self.region:
            return self.region
        if not _REGION.fullmatch(requested):
            raise InvalidInputError("expected a region like `eu-central-1` at $.region, found another text")
        return requested

    def parse(self, uri: str, requested_region: str) -> S3Address:
        """The parts of an address; RefusedError for one on another host."""
        if not (uri.isascii() and uri.isprintable()) or " " in uri:
            raise InvalidInputError("expected a URI in percent-encoding at $.uri, found other characters")
        try:
            parts = urlsplit(uri)
            host = _authority(parts)
        except ValueError:
            raise InvalidInputError("expected a URI at $.uri, found another text") from None
        if parts.fragment or "#" in uri:
            raise InvalidInputError("expected a URI without a fragment at $.uri, found one")
        home = next(
            (home for home in self._homes(requested_region) if (parts.scheme, host) == home or _is_below(parts, home)),
            None,
        )
        if home is None or parts.username is not None or parts.password is not None:
            raise RefusedError(
                "expected a request to the S3 endpoint of this server, found another host",
                hints=[f"the endpoint is {self.url}"] if self.url else [],
            )
        is_path_style = host == home[1]
        path = decode_path(parts.path.removeprefix("/"), "$.uri")
        if is_path_style:
            bucket, _, key = path.partition("/")
        else:
            bucket, key = host.removesuffix(f".{home[1]}"), path
        if not _BUCKET.fullmatch(bucket):
            raise RefusedError("expected a request to a bucket, found one to none")
        return S3Address(parts.scheme, host, bucket, key, _query(parts.query), is_path_style)

    def _homes(self, requested_region: str) -> list[tuple[str, str]]:
        """Scheme and authority of the endpoint, without a bucket."""
        if self.url:
            parts = urlsplit(self.url)
            return [(parts.scheme, _authority(parts))]
        region = self.region_for(requested_region)
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        hosts = [f"s3.{region}.{domain}", f"s3.dualstack.{region}.{domain}"]
        return [("https", host) for host in (*hosts, *([f"s3.{domain}"] if region == "us-east-1" else []))]


def decode_path(text: str, place: str) -> str:
    """A path, decoded once; RefusedError if anything on the way could take it for another one."""
    path = decode(text, place)
    check_key(path)
    return path


def decode(text: str, place: str) -> str:
    """A text without percent-encoding; InvalidInputError unless it is UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInputError(f"expected UTF-8 in percent-encoding at {place}, found other bytes") from None


def check_key(key: str) -> None:
    """RefusedError for a key that is not its own canonical path: `..`, empty parts, control characters."""
    *directories, last = key.split("/")
    parts = [*directories, last] if last else directories
    if _UNSAFE.search(key) or any(not part or {part.partition(";")[0], unquote(part)} & _DOTS for part in parts):
        raise RefusedError(f"expected a key without empty, `.` and `..` parts, found {key[:200]!a}")


def _authority(parts: SplitResult) -> str:
    """Host and port in lower case, without the port that the scheme implies."""
    host = (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    port = parts.port
    return shown if port is None or port == _PORTS.get(parts.scheme) else f"{shown}:{port}"


def _is_below(parts: SplitResult, home: tuple[str, str]) -> bool:
    return parts.scheme == home[0] and _authority(parts).endswith(f".{home[1]}")


def _query(text: str) -> dict[str, str]:
    """The query's parameters; each may be there once."""
    found: dict[str, str] = {}
    for pair in text.split("&") if text else ():
        name, _, value = pair.replace("+", "%20").partition("=")
        name = decode(name, "$.uri")
        if name in found:
            raise InvalidInputError(f"expected each query parameter once at $.uri, found {name[:40]!a} again")
        found[name] = decode(value, "$.uri")
    return found
