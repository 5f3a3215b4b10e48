"""Small manuscripts made on the spot, for the tests of the importers."""

import io
import zipfile
from html import escape

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def page(
    body: str,
    *,
    head: str = "",
    language: str = "en",
    declaration: str = '<?xml version="1.0" encoding="utf-8"?>',
) -> str:
    """An XHTML page."""
    return (
        f'{declaration}<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
        f' xml:lang="{language}"><head><title>Head title</title>{head}</head><body>{body}</body></html>'
    )


def zip_make(entries: dict[str, str | bytes]) -> io.BytesIO:
    """A zip archive of the given files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    file.seek(0)
    return file


def epub_make(
    pages: dict[str, str],
    contents: list[tuple[str, str]] | None = None,
    *,
    nav: str = "",
    ncx: bool = False,
    metadata: str = "<dc:title>A Made Book</dc:title><dc:creator>A. Writer</dc:creator><dc:language>en</dc:language>",
    spine: list[str] | None = None,
    nonlinear: tuple[str, ...] = (),
    extra: dict[str, str | bytes] | None = None,
    missing: tuple[str, ...] = (),
    leave: tuple[str, ...] = (),
) -> io.BytesIO:
    """An EPUB. `pages`: file name → XHTML body (or whole page); `contents`: (title, href).

    `missing` pages are named but not there; `leave` names entries that are not written.
    """
    if contents is None and not nav:
        contents = [(f"Chapter {n}", name) for n, name in enumerate(pages, 1)]
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate([*pages, *missing])
    )
    order = spine or [*pages, *missing]
    names = [*pages, *missing]
    refs = "".join(
        f'<itemref idref="i{names.index(name)}"{" linear=" + chr(34) + "no" + chr(34) if name in nonlinear else ""}/>'
        for name in order
    )
    entries: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
    }
    if contents is not None and not nav:
        nav = (
            "<ol>"
            + "".join(f'<li><a href="{href}">{escape(title)}</a></li>' for title, href in contents)
            + "</ol>"
        )
    if ncx:
        points = "".join(
            f'<navPoint id="p{n}" playOrder="{n}"><navLabel><text>{escape(t)}</text></navLabel><content src="{h}"/></navPoint>'
            for n, (t, h) in enumerate(contents or [], 1)
        )
        entries["OEBPS/toc.ncx"] = (
            f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>{points}</navMap></ncx>'
        )
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    else:
        entries["OEBPS/nav.xhtml"] = page(f'<nav epub:type="toc">{nav}</nav>')
        items += '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
    entries["OEBPS/book.opf"] = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:opf="http://www.idpf.org/2007/opf">{metadata}</metadata>'
        f"<manifest>{items}</manifest><spine{' toc=' + chr(34) + 'ncx' + chr(34) if ncx else ''}>{refs}</spine></package>"
    )
    for name, body in pages.items():
        entries[f"OEBPS/{name}"] = (
            body if body.lstrip().startswith(("<?xml", "<html", "<!DOCTYPE")) else page(body)
        )
    entries |= extra or {}
    return zip_make({name: data for name, data in entries.items() if name not in leave})


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = (
    f'<w:styles xmlns:w="{W}"><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="My chapter"/><w:basedOn w:val="Kop1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Zitat"><w:name w:val="Quote"/></w:style></w:styles>'
)


def paragraph(text: str, style: str = "") -> str:
    """A Word paragraph of one run."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def docx_make(body: str, **parts: str) -> io.BytesIO:
    """A DOCX. `parts`: further parts of word/, by name without ending."""
    entries: dict[str, str | bytes] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": STYLES,
    }
    for name, content in parts.items():
        entries[f"word/{name}.xml"] = content
    return zip_make(entries)


def pdf_make(pages: list[list[tuple[float, float, float, str]]]) -> io.BytesIO:
    """A PDF with a text layer. Each page is a list of (x, y, size in points, text); Latin letters only."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    kids = []
    for lines in pages:
        drawn = b"".join(
            b"BT /F1 %g Tf %g %g Td (%s) Tj ET\n"
            % (
                size,
                x,
                y,
                text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)"),
            )
            for x, y, size, text in lines
        )
        number = len(objects) + 1
        kids.append(b"%d 0 R" % number)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
            % (number + 1)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    data = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return io.BytesIO(data)
