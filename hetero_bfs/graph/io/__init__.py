"""Graph files, one module per format; `registry` chooses it by the file's suffix."""
