"""Completion scripts: shells read them and complete with them; printing one loads no NumPy."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from cli_runs import run

BASH = shutil.which("bash")
ZSH = shutil.which("zsh")

_COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
$(complete -p hetero-bfs | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh"):
        code = (
            f"import sys; from hetero_bfs.cli.main import main; main(['completion', '{shell}'])\n"
            "print([m for m in ('numpy', 'numba', 'pyopencl') if m in sys.modules], "
            "file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stderr.strip() == "[]"
        (folder / shell).write_text(done.stdout)
    return folder


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "among"),
    [
        (["gr"], {"graph500"}),
        (["d"], {"devices", "doctor"}),
        (["bfs", "--dev"], {"--device", "--device-memory"}),
        (["graph500", "--kernel", ""], {"bfs", "sssp"}),
        (["completion", ""], {"bash", "zsh"}),
    ],
)
def test_bash_completes(scripts, words, among):
    done = subprocess.run(
        [BASH, "-c", _COMPLETE, "-", scripts / "bash", "hetero-bfs", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert among <= set(done.stdout.split())
    if words[-1]:
        assert all(word.startswith(words[-1]) for word in done.stdout.split())


@pytest.mark.skipif(ZSH is None, reason="no zsh")
def test_zsh_reads_its_script(scripts):
    subprocess.run([ZSH, "-n", scripts / "zsh"], check=True)


def test_an_unknown_shell(capsys):
    assert run("completion", "fish") == 2
    assert "choose from" in capsys.readouterr().err
