"""One file per kind of model. A new engine is a new file here with a class `ENGINE`; nothing else changes."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

from inference_worker.engines.base import Engine

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


def engine_names() -> list[str]:
    """Names of the engines that lie in this folder, sorted. Imports none of them."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "base")


def engine_class(name: str) -> type[Engine]:
    """The engine's class. Raises LookupError naming the known ones; ImportError when its libraries are missing."""
    if not _NAME.fullmatch(name) or name not in engine_names():
        raise LookupError(f"No engine “{name}”. There are: {', '.join(engine_names())}.")
    return importlib.import_module(f"{__name__}.{name}").ENGINE


def engine_lacks(name: str) -> list[str]:
    """Modules in the engine's `NEEDS` that are not installed here. Reads the file; imports nothing."""
    tree = ast.parse((Path(__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == [
            "NEEDS"
        ]:
            return [m for m in ast.literal_eval(node.value) if importlib.util.find_spec(m) is None]
    return []
