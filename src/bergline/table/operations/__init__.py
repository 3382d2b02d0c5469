"""Operations that change rows and files, each `(base) -> Change`."""
