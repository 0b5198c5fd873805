"""Run a notebook's cells and keep their outputs: `python docs/run_notebook.py tutorial.ipynb`.

The cells run in this process, one after another in one namespace, as Jupyter runs them. A cell's
last expression is its output: HTML if the object has some, a picture of a Matplotlib figure, else
text. So neither Jupyter nor a kernel has to be installed.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl


def run_cells(notebook: dict[str, Any]) -> None:
    """Run all code cells from top to bottom, and replace their outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, 1):
        value = _run("".join(cell["source"]), f"cell {number}", namespace)
        cell["execution_count"] = number
        cell["outputs"] = [] if value is None else [_output(value, number)]


def _run(source: str, name: str, namespace: dict[str, Any]) -> object:
    """Run a cell; return the value of its last expression, None if it ends with a statement."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is None:
        return None
    value: object = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    return value


def _output(value: Any, number: int) -> dict[str, Any]:
    data = {"text/plain": f"<{type(value).__name__}>"}
    if hasattr(value, "savefig"):
        stream = io.StringIO()
        settings = {"svg.hashsalt": "hetero_bfs", "svg.fonttype": "none"}  # the same each time
        with mpl.rc_context(settings):
            value.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
        data["image/svg+xml"] = stream.getvalue()[stream.getvalue().index("<svg") :]
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    else:
        data["text/plain"] = repr(value)
    return {
        "output_type": "execute_result",
        "execution_count": number,
        "metadata": {},
        "data": data,
    }


def as_markdown(notebook: dict[str, Any]) -> str:
    """Return the notebook as Markdown, with its code and its outputs, for the site."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_shown(output["data"]) for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def _shown(data: dict[str, str]) -> str:
    if "text/html" in data:
        return f"```{{raw}} html\n{''.join(data['text/html'])}\n```"
    if "image/svg+xml" in data:
        return f"```{{raw}} html\n{''.join(data['image/svg+xml'])}\n```"
    return f"```text\n{''.join(data['text/plain'])}\n```"


def main() -> None:
    """Run the notebook that the command line names."""
    file = Path(__file__).parent / sys.argv[1]
    notebook = json.loads(file.read_text())
    run_cells(notebook)
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
