"""The model store: a folder of entries, each with a manifest. The only place weights are ever loaded from by name."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from inference_worker.errors import StoreRefused

MANIFEST = "manifest.json"
ALLOWED = (".safetensors", ".onnx", ".json", ".txt", ".model", ".wav", ".md", ".jinja", ".npy")
"""Files an entry may hold. No pickle: those run code when opened."""
_VOICES = "voices"  # raw float tables (.bin) may lie here and nowhere else
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One model version as its manifest describes it. `files`: relative path → sha256."""

    name: str
    engine: str
    revision: str
    licence: str
    files: dict[str, str]
    model_name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()

    def manifest(self) -> dict[str, object]:
        """What is written to disk."""
        data = asdict(self)
        del data["folder"], data["name"]
        return data


class Store:
    """A folder `root/<entry>/manifest.json`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entry(self, name: str) -> StoreEntry:
        """Read one entry's manifest. Raises StoreRefused for addresses, paths, unlisted names, bad manifests."""
        if not _NAME.fullmatch(name) or ".." in name:
            raise StoreRefused("The model must be the name of an entry of this server's model store.")
        folder = self.root / name
        path = folder / MANIFEST
        if folder.is_symlink() or not path.is_file():
            raise StoreRefused(f"The model store has no entry “{name}”.")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return StoreEntry(
                name=name,
                engine=_text(data["engine"]),
                revision=_revision(data["revision"]),
                licence=_text(data.get("licence", "")),
                files={_relative(k): _text(v) for k, v in data["files"].items()},
                model_name=_text(data.get("model_name") or name),
                options={_text(k): _text(v) for k, v in data.get("options", {}).items()},
                folder=folder,
            )
        except (ValueError, KeyError, AttributeError, TypeError):
            raise StoreRefused(f"The manifest of “{name}” is not well formed.") from None

    def names(self) -> list[str]:
        """Entries that have a manifest, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(
            p.parent.name for p in self.root.glob(f"*/{MANIFEST}") if _NAME.fullmatch(p.parent.name)
        )

    def verify(self, name: str) -> StoreEntry:
        """The entry, once every file is there, allowed and has its sha256. Raises StoreRefused saying which not."""
        entry = self.entry(name)
        present = {p.relative_to(entry.folder).as_posix() for p in entry.folder.rglob("*") if p.is_file()}
        for extra in sorted(present - set(entry.files) - {MANIFEST}):
            raise StoreRefused(f"“{name}” holds {extra}, which its manifest does not list.")
        for relative, digest in entry.files.items():
            path = entry.folder / relative
            if not _allowed(relative):
                raise StoreRefused(
                    f"“{name}” lists {relative}: only safetensors, ONNX and plain data are loaded."
                )
            if path.is_symlink() or not path.is_file():
                raise StoreRefused(f"“{name}” lacks {relative}.")
            if sha256_of(path) != digest:
                raise StoreRefused(f"{relative} of “{name}” is not what the manifest says (sha256).")
        return entry

    def add(
        self,
        name: str,
        source: Path,
        *,
        engine: str,
        licence: str,
        revision: str = "",
        options: dict[str, str] | None = None,
    ) -> StoreEntry:
        """Copy a folder in as a new entry. The revision defaults to a digest of its files.

        Raises StoreRefused when the name is taken or unsafe, or a file is not of an allowed kind. Files that start
        with a dot are left out.
        """
        if not _NAME.fullmatch(name) or ".." in name:
            raise StoreRefused("An entry's name holds letters, digits, dots, hyphens and underscores.")
        target = self.root / name
        if target.exists():
            raise StoreRefused(f"There is an entry “{name}” already.")
        paths = sorted(
            p
            for p in source.rglob("*")
            if p.is_file() and not any(x.startswith(".") for x in p.relative_to(source).parts)
        )
        files = {p.relative_to(source).as_posix(): p for p in paths if p.name != MANIFEST}
        bad = [r for r in files if not _allowed(r)]
        if bad:
            raise StoreRefused(
                f"Not allowed in a store (convert weights to safetensors first): {', '.join(bad[:5])}"
            )
        if not files:
            raise StoreRefused("The folder is empty.")
        digests = {r: sha256_of(p) for r, p in files.items()}
        whole = hashlib.sha256(
            "".join(f"{r}\0{d}\n" for r, d in sorted(digests.items())).encode()
        ).hexdigest()
        entry = StoreEntry(
            name, engine, _revision(revision or whole[:12]), licence, digests, name, options or {}, target
        )
        partial = self.root / f".{name}.part"
        shutil.rmtree(partial, ignore_errors=True)
        for relative, path in files.items():
            to = partial / relative
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        (partial / MANIFEST).write_text(json.dumps(entry.manifest(), indent=1), encoding="utf-8")
        partial.rename(target)
        return self.verify(name)


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _allowed(relative: str) -> bool:
    path = Path(relative)
    if path.suffix == ".bin":
        return path.parent.name == _VOICES
    return path.suffix in ALLOWED


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value


def _revision(value: object) -> str:
    text = _text(value)
    if not _NAME.fullmatch(text):
        raise ValueError("not a revision")
    return text


def _relative(value: object) -> str:
    text = _text(value)
    path = Path(text)
    if path.is_absolute() or ".." in path.parts or "\\" in text or not text:
        raise ValueError("not a relative path")
    return text
