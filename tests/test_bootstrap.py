"""The script that sets everything up: what it skips, what it refuses, how it explains."""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, loaded from a copy in an empty project."""
    for name in ("pyproject.toml", "constraints.txt", "bootstrap.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    spec = importlib.util.spec_from_file_location("bootstrap_copy", tmp_path / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("INFERENCE", raising=False)
    return module


def test_only_the_standard_library_is_imported():
    tree = ast.parse((ROOT / "bootstrap.py").read_text())
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ((20, 19, 0), True),
        ((20, 18, 3), False),
        ((21, 7, 0), False),
        ((22, 11, 0), False),
        ((22, 12, 0), True),
        ((24, 19, 0), True),
        ((), False),
    ],
)
def test_which_node_fits(bootstrap, version, fits):
    assert bootstrap.node_fits(version) is fits


def test_digest_frames_its_parts(bootstrap):
    assert bootstrap.digest(b"ab", b"c") != bootstrap.digest(b"a", b"bc")


def test_tree_digest_sees_contents_and_names(bootstrap, tmp_path):
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.ts").write_text("1")
    before = bootstrap.tree_digest(folder, ["src", "absent.json"])
    os.utime(folder / "src" / "a.ts", (1, 1))
    assert bootstrap.tree_digest(folder, ["src", "absent.json"]) == before, "a date is no change"
    (folder / "src" / "a.ts").write_text("2")
    assert bootstrap.tree_digest(folder, ["src"]) != before
    (folder / "src" / "a.ts").write_text("1")
    (folder / "src" / "a.ts").rename(folder / "src" / "b.ts")
    assert bootstrap.tree_digest(folder, ["src"]) != before


class Calls:
    """Stands in for pip: notes what would be installed."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.extras: list[str] = []

    def __call__(self, what, argv, *, log, cwd=None):
        self.extras.append(str(argv[-1]).rpartition("[")[2].rstrip("]"))
        return self.code, ["could not install"]


@pytest.fixture
def pip(bootstrap, monkeypatch) -> Calls:
    calls = Calls()

    def venv_make() -> None:
        bootstrap.PYTHON.parent.mkdir(parents=True)
        bootstrap.PYTHON.touch()

    monkeypatch.setattr(bootstrap, "run_logged", calls)
    monkeypatch.setattr(bootstrap, "venv_make", venv_make)
    monkeypatch.setattr(bootstrap, "venv_works", bootstrap.PYTHON.exists)
    return calls


def test_setup_installs_once(bootstrap, pip):
    bootstrap.setup()
    bootstrap.setup()
    assert pip.extras == ["kokoro"]


def test_setup_adds_extras_and_keeps_those_it_had(bootstrap, pip):
    bootstrap.setup(["dev"])
    bootstrap.setup()
    bootstrap.setup(["assets"])
    assert pip.extras == ["dev,kokoro", "assets,dev,kokoro"]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_setup_installs_again_when_the_wishes_change(bootstrap, pip, name):
    bootstrap.setup()
    (bootstrap.ROOT / name).write_text("# changed\n")
    bootstrap.setup()
    assert pip.extras == ["kokoro", "kokoro"]


def test_a_failed_install_is_tried_again(bootstrap, pip):
    pip.code = 1
    with pytest.raises(bootstrap.Failed):
        bootstrap.setup()
    pip.code = 0
    bootstrap.setup()
    bootstrap.setup()
    assert pip.extras == ["kokoro", "kokoro"]


def test_torch_only_when_asked(bootstrap, pip, monkeypatch):
    monkeypatch.setenv("INFERENCE", "torch")
    bootstrap.setup()
    assert pip.extras == ["kokoro,torch"]
    monkeypatch.setenv("INFERENCE", "tensorflow")
    with pytest.raises(bootstrap.Failed, match="tensorflow"):
        bootstrap.setup()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("Temporary failure in name resolution", "cannot be reached"),
        ("npm error code ENOTFOUND", "cannot be reached"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: No matching distribution found for numpy==2.4.6", "does not exist for Python"),
        ("npm error code EACCES", "may not write"),
        ("something else", "whole output is in"),
    ],
)
def test_failures_are_explained(bootstrap, line, hint):
    problem = str(bootstrap.failed_step("Installing", [line], "pip.log"))
    assert hint in problem
    assert line in problem
    assert "pip.log" in problem


def test_an_old_python_is_told_so(bootstrap, monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "PYTHON_LEAST", (99, 0))
    assert bootstrap.main(["setup"]) == 1
    assert "Python 3.11 or newer" in capsys.readouterr().out


def test_without_venv_module_the_package_is_named(bootstrap, monkeypatch):
    class Refused:
        returncode, stdout, stderr = 1, "", "No module named ensurepip"

    monkeypatch.setattr(bootstrap.subprocess, "run", lambda *_, **__: Refused())
    with pytest.raises(bootstrap.Failed, match=r"python3\.\d+-venv"):
        bootstrap.venv_make()


def test_ctrl_c_waits_for_the_child(bootstrap, tmp_path):
    """The child ends in its own time and we report 130, as a shell expects."""
    child = "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: (time.sleep(0.3), print('child done', flush=True), sys.exit(0)))\nprint('up', flush=True)\ntime.sleep(30)\n"
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import bootstrap\n"
        f"try:\n    bootstrap.run([sys.executable, '-c', {child!r}])\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    started = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=15)
    assert (process.returncode, out) == (130, "child done\n")
    assert time.monotonic() - started < 10
