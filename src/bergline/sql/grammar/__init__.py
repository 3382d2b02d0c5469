"""Pieces that statements share: types, columns, properties, terms and literals as SQL writes them."""
