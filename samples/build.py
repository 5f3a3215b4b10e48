"""Builds the sample book's EPUB 3 from its Markdown, byte for byte the same every time; standard library only.

python3 samples/build.py            # writes samples/the-weather-reader.epub
"""

from __future__ import annotations

import html
import io
import re
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLUG = "the-weather-reader"
IDENTIFIER = "urn:uuid:0193a7b0-6c1e-7b52-9d1f-5a8e2c4f7d10"
AUTHOR = "Voice Project contributors"
DESCRIPTION = "In thirty-one years Ines Tarrow has never missed a bulletin. On her last night, one more boat is listening."
MODIFIED = "2026-01-01T00:00:00Z"
ZIP_TIME = (2026, 1, 1, 0, 0, 0)

CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
  <rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""

PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en-GB" xml:lang="en-GB">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>
{body}
</body>
</html>
"""

CSS = """body { margin: 5%; line-height: 1.5; }
h1, h2 { font-weight: normal; text-align: center; margin: 3em 0 2em; }
p { margin: 0; text-indent: 1.4em; }
h2 + p, hr + p { text-indent: 0; }
hr { border: 0; margin: 1.5em 0; text-align: center; }
hr::before { content: "* * *"; }
"""


def inline(text: str) -> str:
    """Escape a line and turn *stars* into emphasis."""
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", html.escape(text, quote=False))


def read(text: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """Split the Markdown into the book's title and (chapter title, XHTML blocks) pairs."""
    title = ""
    chapters: list[tuple[str, list[str]]] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        line = " ".join(block.split())
        if line.startswith("## "):
            chapters.append((line[3:], []))
        elif line.startswith("# "):
            title = line[2:]
        elif line == "* * *":
            chapters[-1][1].append("<hr/>")
        else:
            chapters[-1][1].append(f"<p>{inline(line)}</p>")
    return title, chapters


def files(source: Path) -> dict[str, bytes]:
    """Everything inside the EPUB except the mimetype, in order."""
    title, chapters = read((source / "book.md").read_text(encoding="utf-8"))
    pages: dict[str, str] = {}
    entries = []
    for number, (name, blocks) in enumerate(chapters, 1):
        heading = f'<section epub:type="chapter" role="doc-chapter">\n<h2>{html.escape(name)}</h2>'
        pages[f"chapter{number}.xhtml"] = PAGE.format(
            title=html.escape(name), body="\n".join([heading, *blocks, "</section>"])
        )
        entries.append(f'<li><a href="chapter{number}.xhtml">{html.escape(name)}</a></li>')
    contents = "\n".join(
        ['<nav epub:type="toc" role="doc-toc"><h1>Contents</h1><ol>', *entries, "</ol></nav>"]
    )
    pages["nav.xhtml"] = PAGE.format(title="Contents", body=contents)
    navigation = ' properties="nav"'
    items = [
        f'<item id="{Path(name).stem}" href="{name}" media-type="application/xhtml+xml"'
        f"{navigation if name == 'nav.xhtml' else ''}/>"
        for name in pages
    ]
    spine = [f'<itemref idref="chapter{number}"/>' for number in range(1, len(chapters) + 1)]
    package = f"""<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en-GB">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{IDENTIFIER}</dc:identifier>
<dc:title>{html.escape(title)}</dc:title>
<dc:creator>{AUTHOR}</dc:creator>
<dc:language>en-GB</dc:language>
<dc:publisher>Voice Project</dc:publisher>
<dc:date>2026</dc:date>
<dc:rights>Apache License 2.0</dc:rights>
<dc:description>{DESCRIPTION}</dc:description>
<meta property="dcterms:modified">{MODIFIED}</meta>
</metadata>
<manifest>
{chr(10).join(items)}
<item id="css" href="book.css" media-type="text/css"/>
<item id="cover-image" href="cover.jpg" media-type="image/jpeg" properties="cover-image"/>
</manifest>
<spine>{"".join(spine)}</spine>
</package>
"""
    found = {"META-INF/container.xml": CONTAINER.encode(), "OEBPS/book.opf": package.encode()}
    found |= {f"OEBPS/{name}": page.encode() for name, page in pages.items()}
    return found | {"OEBPS/book.css": CSS.encode(), "OEBPS/cover.jpg": (source / "cover.jpg").read_bytes()}


def build(source: Path) -> bytes:
    """Return the EPUB of the book in a folder. Entries are stored, so the bytes do not depend on a zlib version."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {"mimetype": b"application/epub+zip", **files(source)}.items():
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return out.getvalue()


def main() -> None:
    """Write the EPUB beside this script."""
    target = HERE / f"{SLUG}.epub"
    target.write_bytes(build(HERE / SLUG))
    sys.stdout.write(f"{target.name}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
