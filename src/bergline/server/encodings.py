"""Which encoding of an answer a client takes, as it says in `Accept-Encoding`."""

_GZIP = ("gzip", "x-gzip", "*")
_PLAIN = ("identity",)


def takes_gzip(header: str | None) -> bool:
    """Whether gzip is welcome, and no less than the plain bytes; who says nothing gets those."""
    if not header:
        return False
    weights: dict[str, float] = {}
    for wish in header.split(","):
        name, *parameters = (part.strip().lower() for part in wish.split(";"))
        weights[name] = _weight(parameters)
    gzip = next((weights[name] for name in _GZIP if name in weights), 0.0)
    plain = next((weights[name] for name in _PLAIN if name in weights), 0.0)
    return gzip > 0 and gzip >= plain


def _weight(parameters: list[str]) -> float:
    """How welcome, from 0 to 1; what cannot be read is not."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
