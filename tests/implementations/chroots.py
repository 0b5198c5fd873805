"""Chroots by debootstrap. What is done once is kept in a folder, and marked there as done.

Mirrors, proxies and pip's settings are this machine's own, read when a chroot is made or entered.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from .setups import RELEASES, drivers_of

CHECKOUT = Path(__file__).resolve().parents[2]
INSIDE = "/srv/checkout"
SETTINGS = "/srv/settings"
"""Where files that pip's settings name are copied to: the release has its own at their place."""
PYTHON = "/srv/venv/bin/python"
KEYRING = "ubuntu-archive-keyring"
KEPT_VARIABLES = re.compile(r"(?i)(pip_.*|.*_proxy|ssl_cert_file|requests_ca_bundle)")
ENTER = """
set -e
root=$1; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
done
shift
exec chroot "$root" "$@"
"""


class ChrootError(Exception):
    """A step failed; the message names it and its log."""


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"implementations: {text}", file=sys.stderr, flush=True)


class Chroots:
    """All chroots below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "setup.log"
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, step: str, command: Sequence[str], **options) -> None:
        """Run a command with its output in the log; raise `ChrootError` if it fails."""
        with self.log.open("a") as log:
            print(f"\n== {step}", file=log, flush=True)
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, **options
            )
        if done.returncode != 0:
            raise ChrootError(f"{step} failed (status {done.returncode}); see {self.log}")

    def enter(self, root: Path, command: Sequence[str], **environment: str) -> list[str]:
        """Return a command that runs a command in a chroot, with mounts and processes of its own.

        When it ends, its mounts are gone and its processes are killed.
        """
        settings, folders, files = network_settings()
        copies = {file: f"{SETTINGS}{file}" for file in files}
        for file, copy in {**copies, Path("/etc/resolv.conf"): "/etc/resolv.conf"}.items():
            target = root / copy.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        binds = [(folder, folder) for folder in folders]
        if (CHECKOUT.parent / "shared").is_dir():
            binds.append(((CHECKOUT.parent / "shared").resolve(), Path("/srv/shared")))
        variables = {
            "HOME": "/root",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **settings,
            **environment,
        }
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, "-"]
        mounts = [str(path) for pair in binds for path in pair]
        words = [f"{name}={text}" for name, text in variables.items()]
        return [*own, str(root), *mounts, "--", "/usr/bin/env", "-i", *words, *command]

    def inside(self, root: Path, *command: str) -> None:
        """Run a command in a chroot, logged."""
        self.run(f"{root.name}: {' '.join(command)}", self.enter(root, command))

    def base(self, name: str) -> Path:
        """Make the bare system of a release, with its Python, unless it is there."""
        made = self.folder / "base" / name
        if made.is_dir():
            return made
        release = RELEASES[name]
        part = made.with_name(f"{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(exist_ok=True)
        say(f"{release.title}: debootstrap (minutes)")
        components = f"--components={release.components.replace(' ', ',')}"
        options = ["--variant=minbase", components, *self._keyring(release.origin)]
        command = ["debootstrap", *options, release.suite, str(part), mirror(release.origin)]
        scripts = Path("/usr/share/debootstrap/scripts")
        if not (scripts / release.suite).exists():  # newer than debootstrap
            command.append(str(scripts / {"Debian": "sid", "Ubuntu": "gutsy"}[release.origin]))
        self.run(f"debootstrap of {release.title}", command)
        # A mirror may serve the state of an earlier day.
        proxies = [line for line in apt_settings() if "proxy" in line.lower()]
        lines = ['Acquire::Check-Valid-Until "false";', *proxies]
        (part / "etc/apt/apt.conf.d/90mirror").write_text("\n".join(lines) + "\n")
        self.install(part, [release.python])
        part.rename(made)
        return made

    def _keyring(self, origin: str) -> list[str]:
        """Return the option that names Ubuntu's keys: Debian 13 has them as a package."""
        if origin == "Debian":
            return []
        keys = Path(f"usr/share/keyrings/{KEYRING}.gpg")
        if (Path("/") / keys).exists():
            return []
        root = self.copy("debian13")
        if not (root / keys).exists():
            self.install(root, [KEYRING])
        return [f"--keyring={root / keys}"]

    def install(self, root: Path, packages: Iterable[str]) -> None:
        """Install packages of the release in a chroot."""
        self.inside(root, "apt-get", "update")
        self.inside(root, "apt-get", "install", "-y", "--no-install-recommends", *packages)

    def copy(self, name: str) -> Path:
        """Return the chroot of a release in which the suite runs, first a copy of the bare one."""
        root = self.folder / "roots" / name
        if not root.is_dir():
            base, part = self.base(name), root.with_name(f"{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.parent.mkdir(exist_ok=True)
            self.run(f"copying {base}", ["cp", "-a", str(base), str(part)])
            part.rename(root)
        return root

    def prepare(self, name: str) -> Path:
        """Return the chroot of a release with drivers, the checkout, and the package installed."""
        release, root = RELEASES[name], self.copy(name)
        drivers = [package for driver in drivers_of(name) for package in driver.packages]
        packages = [f"{release.python}-venv", *drivers]
        with Stamp(root, "packages", *packages) as stamp:
            if not stamp.is_done:
                say(f"{release.title}: installing {' '.join(packages)}")
                self.install(root, packages)
        lay_checkout(root / INSIDE.lstrip("/"))
        with Stamp(root, "venv", (CHECKOUT / "pyproject.toml").read_text()) as stamp:
            if not stamp.is_done:
                say(f"{release.title}: installing the package for {release.python} (minutes)")
                venv = [release.python, "-m", "venv", str(Path(PYTHON).parents[1])]
                self.inside(root, *venv)
                pip = [PYTHON, "-m", "pip", "install", "--no-input", "-e", f"{INSIDE}[test]"]
                self.inside(root, *pip)
        return root


class Stamp:
    """Marks a step in a chroot as done, with what it was done for."""

    def __init__(self, root: Path, step: str, *inputs: str) -> None:
        self._file = root / "srv" / f".{step}"
        self._key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
        self.is_done = self._file.exists() and self._file.read_text() == self._key

    def __enter__(self) -> Stamp:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._file.write_text(self._key)


def lay_checkout(folder: Path) -> None:
    """Copy this checkout's files, changed ones too, with their times: compiled code stays valid."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    names = {name for name in done.stdout.split("\0") if name and (CHECKOUT / name).is_file()}
    for name in names:
        source, target = CHECKOUT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    for old in [path for path in folder.rglob("*") if path.is_file()]:
        generated = {"__pycache__", "hetero_bfs.egg-info"} & set(old.parts)
        if str(old.relative_to(folder)) not in names and not generated:
            old.unlink()


@cache
def apt_settings() -> list[str]:
    """Return this machine's settings of apt, a line each; none where apt is absent."""
    return _lines("apt-config", "dump")


def mirror(origin: str) -> str:
    """Return the mirror that this machine's apt uses; empty for debootstrap's own."""
    form = "$(ORIGIN) $(LABEL) $(REPO_URI)"
    listed = _lines("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    found = [line.split()[2] for line in listed if line.startswith(f"{origin} {origin} ")]
    return found[0] if found else ""


@cache
def network_settings() -> tuple[dict[str, str], set[Path], set[Path]]:
    """Return variables for the network and pip, and the folders and files that they name.

    The variables name each file below SETTINGS.
    """
    settings = {}
    for line in _lines(sys.executable, "-m", "pip", "config", "list"):
        name, _, text = line.partition("=")
        section, _, key = name.rpartition(".")
        if section != ":env:":
            settings[f"PIP_{key.upper().replace('-', '_')}"] = ast.literal_eval(text)
    settings |= {name: text for name, text in os.environ.items() if KEPT_VARIABLES.fullmatch(name)}
    folders, files = set(), set()
    for name, text in settings.items():
        words = text.split()
        for at, word in enumerate(words):
            path = Path(word.removeprefix("file://"))
            if path.is_absolute() and path.is_file():
                files.add(path)
                words[at] = f"{SETTINGS}{path}"
            elif path.is_absolute() and path.is_dir():
                # An index has its files beside its pages.
                folders.add(path.parent if word.startswith("file://") else path)
        settings[name] = " ".join(words)
    return settings, folders, files


def _lines(*command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []
