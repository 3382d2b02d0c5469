"""Protected refs: rules about who may move a branch or tag, and how, decided in the commit itself."""
