"""Graph files, one module a format; `registry` picks it by the file's name."""
