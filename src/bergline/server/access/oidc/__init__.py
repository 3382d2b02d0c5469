"""Tokens that OpenID Connect issuers sign: the issuers' keys, and who a token says that somebody is."""
