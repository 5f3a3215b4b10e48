"""What the front pages promise is there: links, pictures, commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name} points to {target}"


def test_make_targets_are_bootstrap_commands():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    offered = re.search(r"choices=\[([^\]]+)\]", (ROOT / "bootstrap.py").read_text())
    assert offered is not None
    assert set(targets) == set(re.findall(r'"([a-z]+)"', offered[1]))


def test_commands_in_the_pages_exist():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"`make ([a-z]+)", text)) <= set(targets)
    commands = {path.stem for path in ROOT.glob("*/management/commands/*.py")}
    named = set(re.findall(r"manage\.py ([a-z]+)", text)) - {"createsuperuser", "migrate", "check"}
    assert named <= commands, named - commands


def test_rooms_on_the_map_exist():
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `") and "/`" in line.split("|")[1]:
            cell = line.split("|")[1]
            names = re.findall(r"`([\w./]+)`", cell)
            base = ROOT / names[0].rstrip("/").rpartition("/")[0]
            for name in names:
                found = (ROOT / name).exists() or (base / name).exists()
                assert found, f"CONTRIBUTING.md names {name}"
