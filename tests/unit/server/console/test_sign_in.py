import pytest

from bergline.errors import RefusedError
from bergline.server.console.sign_in import SignIn, is_cookie_text
from bergline.server.console.visit import Visit


def visit(cookies: dict[str, str], form: dict[str, str] | None = None, host: str = "localhost:8181") -> Visit:
    return Visit("POST", "", {}, {"host": host}, cookies, form=form or {})


def test_secret_of_forms_depends_on_browser_and_token() -> None:
    known = {"bergline-form-8181": "n"}
    signed = known | {"bergline-token-8181": "t"}
    assert SignIn(visit(known)).csrf != SignIn(visit(signed)).csrf
    SignIn(visit(signed, {"csrf": SignIn(visit(signed)).csrf})).check_form()
    with pytest.raises(RefusedError, match="from before signing in"):
        SignIn(visit(signed, {"csrf": SignIn(visit(known)).csrf})).check_form()


def test_servers_on_other_ports_have_other_cookies() -> None:
    cookies = {"bergline-token-8181": "t"}
    assert SignIn(visit(cookies)).token == cookies["bergline-token-8181"]
    assert SignIn(visit(cookies, host="localhost:9000")).token is None


@pytest.mark.parametrize(
    ("token", "fits"), [("bl_a-B9", True), ("a;b", False), ("a b", False), ("ä", False), ("\r\n", False)]
)
def test_token_that_a_cookie_cannot_hold_is_told(token: str, fits: bool) -> None:
    assert is_cookie_text(token) is fits


def test_under_tls_no_other_host_can_set_the_cookies() -> None:
    plain, hosts_own = {"bergline-token-8181": "planted"}, {"__Host-bergline-token-8181": "t"}
    secure = Visit("GET", "", {}, {"host": "localhost:8181"}, plain | hosts_own, is_secure=True)
    assert SignIn(secure).token == hosts_own["__Host-bergline-token-8181"]
    assert SignIn(secure).token_cookie("x", 60).split("; ") == [
        "__Host-bergline-token-8181=x",
        "Path=/",
        "HttpOnly",
        "SameSite=Strict",
        "Secure",
        "Max-Age=60",
    ]
