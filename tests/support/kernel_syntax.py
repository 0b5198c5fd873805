"""The syntax tree of OpenCL C: what the rules for kernels (kernel_rules.py) look at."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

from clang import cindex

_NUMBERS = ("char", "short", "int", "long")
_VECTORS = [*_NUMBERS, *(f"u{kind}" for kind in _NUMBERS), "float", "double"]
_PRELUDE = "\n".join(
    [
        "typedef __SIZE_TYPE__ size_t; typedef __PTRDIFF_TYPE__ ptrdiff_t;",
        *(f"typedef unsigned {kind} u{kind};" for kind in _NUMBERS),
        *(
            f"typedef {kind} {kind}{n} __attribute__((ext_vector_type({n})));"
            for kind in _VECTORS
            for n in (2, 3, 4, 8, 16)
        ),
        "typedef uint cl_mem_fence_flags;",
        "#define CLK_LOCAL_MEM_FENCE 1",
        "#define CLK_GLOBAL_MEM_FENCE 2",
        *(f"#define as_{t}(x) __builtin_astype((x), {t})" for t in _VECTORS),
        "#define INFINITY __builtin_inff()",
        '#define NAN __builtin_nanf("")',
    ]
)
"""What clang finds in opencl-c-base.h, which libclang's wheel lacks."""

_ARGUMENTS = [
    *["-x", "cl", "-cl-std=CL1.2", "-Dasm=__asm__", "-w", "-fno-spell-checking"],
    *["-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-cl-ext=+all", "-I", "/rules"],
]
_TRANSPARENT = {"UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR"}
_BINARY = dict(
    enumerate(
        [
            "-",
            ".*",
            "->*",
            "*",
            "/",
            "%",
            "+",
            "-",
            "<<",
            ">>",
            "<=>",
            "<",
            ">",
            "<=",
            ">=",
            "==",
            "!=",
            "&",
            "^",
            "|",
            "&&",
            "||",
            "=",
        ],
        start=0,
    )
)
_UNARY = {1: "++", 2: "--", 3: "++", 4: "--", 5: "&", 6: "*", 10: "!"}


class Node:
    """A part of the program: its kind, as clang names it, and its parts in turn.

    `variable` identifies what a declaration declares, or a reference refers to. `operator` is that
    of an expression. `file` and `line` are its place, `order` its place in the whole text. Brackets
    and casts are left out.
    """

    __slots__ = (
        "children", "file", "kind", "line", "name", "operator", "order", "type", "variable",
    )  # fmt: skip

    def __init__(self, cursor: cindex.Cursor, places: list[tuple[str, int]]) -> None:
        self.kind = cursor.kind.name
        self.name = cursor.spelling
        self.type = cursor.type.spelling
        self.operator = _operator(cursor, self.kind)
        named = cursor.referenced if self.kind == "DECL_REF_EXPR" else cursor
        self.variable = named.hash if named is not None else 0
        line, self.order = cursor.location.line, cursor.location.offset
        self.file, self.line = _place(places, line)
        self.children = [_node(child, places) for child in cursor.get_children()]
        if self.kind == "INTEGER_LITERAL":
            self.name = str(_value(cursor))
        if self.kind == "CALL_EXPR":
            self.name = self.name or self.children[0].name
            self.children = self.children[1:]

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def calls(self) -> Iterator[Node]:
        """Yield the calls in it."""
        return (node for node in self.walk() if node.kind == "CALL_EXPR")

    @property
    def is_loop(self) -> bool:
        """Whether it is a loop."""
        return self.kind in ("FOR_STMT", "WHILE_STMT", "DO_STMT")

    @property
    def body(self) -> Node:
        """The body of a loop or function."""
        return self.children[0 if self.kind == "DO_STMT" else -1]

    @property
    def controls(self) -> list[Node]:
        """What decides how often a loop runs."""
        return [child for child in self.children if child is not self.body]

    @property
    def spaces(self) -> tuple[str, str]:
        """The address spaces of a value's own place and of what it points to."""
        outer, star, inner = self.type.rpartition("*")
        own = inner if star else outer or inner
        pointee = outer.rpartition("*")[2] if star else own if "[" in self.type else ""
        return _space(own), _space(pointee)


def _place(places: list[tuple[str, int]], line: int) -> tuple[str, int]:
    """Return the file and its line for a line of the whole text."""
    return places[line - 1] if 0 < line <= len(places) else ("", line)


def _node(cursor: cindex.Cursor, places: list[tuple[str, int]]) -> Node:
    while cursor.kind.name in _TRANSPARENT:
        parts = [c for c in cursor.get_children() if c.kind.name != "TYPE_REF"]
        if len(parts) != 1:
            break
        cursor = parts[0]
    return Node(cursor, places)


def _space(text: str) -> str:
    return next((s for s in ("__global", "__local", "__constant") if s in text), "__private")


def _value(cursor: cindex.Cursor) -> int:
    """Return an integer's value, the lower 32 bits: clang takes long for its text in a macro."""
    library = cindex.conf.lib
    evaluate, as_int, dispose = (
        library.clang_Cursor_Evaluate,
        library.clang_EvalResult_getAsInt,
        library.clang_EvalResult_dispose,
    )
    evaluate.argtypes, evaluate.restype = [cindex.Cursor], ctypes.c_void_p
    as_int.argtypes = dispose.argtypes = [ctypes.c_void_p]
    result = evaluate(cursor)
    value = as_int(result)
    dispose(result)
    return value


def _operator(cursor: cindex.Cursor, kind: str) -> str:
    library = cindex.conf.lib
    if kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"):
        ask = library.clang_getCursorBinaryOperatorKind
        ask.argtypes, ask.restype = [cindex.Cursor], ctypes.c_int
        return "=" if kind.startswith("COMPOUND") else _BINARY.get(ask(cursor), "")
    if kind == "UNARY_OPERATOR":
        ask = library.clang_getCursorUnaryOperatorKind
        ask.argtypes, ask.restype = [cindex.Cursor], ctypes.c_int
        return _UNARY.get(ask(cursor), "")
    return ""


class Tree:
    """A parsed program: functions by name, names of kernels, their local memory, and errors.

    Parameters
    ----------
    sections : sequence of (str, str)
        The program's text, by file.
    options : list of str
        Only the -D options count.
    """

    def __init__(self, sections: Sequence[tuple[str, str]], options: list[str]) -> None:
        places = [
            (file, number) for file, text in sections for number in range(1, text.count("\n") + 1)
        ]
        source = "".join(text for _, text in sections)
        files = [("/rules/program.cl", source), ("/rules/opencl-c-base.h", _PRELUDE)]
        target = "nvptx64-nvidia-nvcl" if "-DNVIDIA" in options else "spir64"
        flags = [f"--target={target}", *(one for one in options if one.startswith("-D"))]
        unit = cindex.Index.create().parse(files[0][0], [*_ARGUMENTS, *flags], files)
        self.errors = [
            f"{':'.join(map(str, _place(places, d.location.line)))}: {d.spelling}"
            for d in unit.diagnostics
            if d.severity >= cindex.Diagnostic.Error
        ]
        self.functions: dict[str, Node] = {}
        self.local_bytes: dict[str, int] = {}
        for cursor in unit.cursor.get_children():
            if cursor.kind.name == "FUNCTION_DECL" and cursor.is_definition():
                function = Node(cursor, places)
                self.functions[function.name] = function
                if cursor.storage_class.name != "STATIC":
                    self.local_bytes[function.name] = _local_bytes(cursor)

    @property
    def kernels(self) -> set[str]:
        """The names of kernels: all other functions are static."""
        return set(self.local_bytes)


def _local_bytes(cursor: cindex.Cursor) -> int:
    own = cursor.type.get_size() if cursor.kind.name == "VAR_DECL" else 0
    is_local = own and "__local" in cursor.type.spelling and "*" not in cursor.type.spelling
    return (own if is_local else 0) + sum(map(_local_bytes, cursor.get_children()))
