"""XML and HTML from strangers into a tree: entities, encodings and broken markup, without network or files."""

import re
from dataclasses import dataclass, field
from html.entities import html5

from lxml import etree
from lxml import html as lxml_html

from .base import ImportRefused

XHTML = "http://www.w3.org/1999/xhtml"
EPUB_NS = "http://www.idpf.org/2007/ops"
XML_NS = "http://www.w3.org/XML/1998/namespace"
SSML_NS = "http://www.w3.org/2001/10/synthesis"

_XML_ENTITIES = {"amp", "lt", "gt", "quot", "apos"}
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9._-]+)""", re.I)
_ENTITY_DECLARATION = re.compile(r"<!ENTITY\s+(%?\s*[\w.-]+)\s+(?:SYSTEM|PUBLIC)\b[^>]*>", re.I)
_INTERNAL_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>""")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass
class Tree:
    """A parsed document and what had to be done to read it."""

    root: etree._Element
    warnings: list[str] = field(default_factory=list)


def text_decode(data: bytes, default: str = "utf-8") -> tuple[str, str]:
    """Bytes of a marked-up document as text, and the encoding. BOM first, then the declaration, then `default`."""
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe\0\0", "utf-32"),
        (b"\0\0\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(name, "replace"), name
    if data[:4] in (b"<\0?\0", b"<\0h\0", b"<\0!\0"):
        return data.decode("utf-16-le", "replace"), "utf-16"
    if data[:4] in (b"\0<\0?", b"\0<\0h", b"\0<\0!"):
        return data.decode("utf-16-be", "replace"), "utf-16"
    head = data[:2048]
    match = _DECLARED.search(head) or _META.search(head)
    declared = match[1].decode("ascii").lower() if match else ""
    declared = {"iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252",
                "shift_jis": "cp932", "shift-jis": "cp932", "x-sjis": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949",
                "gb2312": "gb18030", "gbk": "gb18030"}.get(declared, declared)  # fmt: skip
    for name in (declared, default, "utf-8", "cp1252"):
        if not name:
            continue
        try:
            return data.decode(name), name
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1"), "latin-1"


def _tidy(text: str, warnings: list[str], where: str) -> str:
    """Named entities as numbers, bare ampersands escaped, external entities dropped, forbidden characters gone."""
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1)
    doctype = re.match(r"\s*(?:<!--.*?-->\s*)*<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", text, re.S | re.I)
    own: dict[str, str] = {}
    if doctype:
        subset = doctype[1] or ""
        if _ENTITY_DECLARATION.search(subset) or "<!ENTITY %" in subset:
            warnings.append(f"{where}: references to outside files were dropped.")
        for name, double, single in _INTERNAL_ENTITY.findall(subset):
            value = double or single
            if len(value) > 200 or "&" in value or "<" in value:
                if "&" in value:
                    raise ImportRefused(
                        "malformed_document", f"{where} declares nested entities, which is not allowed."
                    )
                continue
            own[name] = value
        text = text[: doctype.start()] + text[doctype.end() :]

    def entity(match: re.Match[str]) -> str:
        name = match[1]
        if name in _XML_ENTITIES:
            return match[0]
        if name in own:
            return own[name].replace("&", "&amp;").replace("<", "&lt;")
        value = html5.get(name + ";")
        if value is None:
            if doctype and re.search(rf"<!ENTITY\s+{re.escape(name)}\b", doctype[1] or ""):
                return ""  # external: dropped
            return "&amp;" + name + ";"
        return "".join(f"&#{ord(c)};" for c in value)

    text = re.sub(r"&([A-Za-z][A-Za-z0-9]*);", entity, text)
    text = re.sub(r"&(?!#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|[A-Za-z][A-Za-z0-9]*;)", "&amp;", text)
    if _FORBIDDEN.search(text):
        text = _FORBIDDEN.sub(" ", text)
    return text


def _xml_parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_comments=False,
        encoding="utf-8",
    )


def xml_tree(data: bytes, where: str) -> Tree:
    """Well-formed XML, or nearly. Raises ImportRefused `malformed_document`."""
    warnings: list[str] = []
    text, _ = text_decode(data)
    text = _tidy(text, warnings, where)
    encoded = text.encode("utf-8", "replace")
    try:
        return Tree(etree.fromstring(encoded, _xml_parser()), warnings)
    except (etree.XMLSyntaxError, ValueError):
        pass
    try:
        root = etree.fromstring(encoded, _xml_parser(recover=True))
    except (etree.XMLSyntaxError, ValueError):
        root = None
    if root is None:
        raise ImportRefused("malformed_document", f"{where} is not well-formed and cannot be read.")
    return Tree(root, [*warnings, f"{where} is not well-formed XML; it was read as well as possible."])


def html_tree(data: bytes, where: str, *, default: str = "utf-8", strict: bool = True) -> Tree:
    """An XHTML or HTML document. XML rules first (`strict`), then a browser's. Raises ImportRefused.

    Element names come without namespace only from the HTML parser: use `local` to compare.
    """
    warnings: list[str] = []
    text, _ = text_decode(data, default)
    text = _tidy(text, warnings, where)
    if strict:
        try:
            root = etree.fromstring(text.encode("utf-8", "replace"), _xml_parser())
            return Tree(root, warnings)
        except (etree.XMLSyntaxError, ValueError):
            warnings.append(f"{where} is not well-formed; it was read the way browsers read such pages.")
    if not text.strip():
        raise ImportRefused("malformed_document", f"{where} is empty.")
    try:
        parser = lxml_html.HTMLParser(encoding="utf-8", huge_tree=False, no_network=True)
        root = lxml_html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, AssertionError) as exc:
        raise ImportRefused("malformed_document", f"{where} cannot be read as HTML.") from exc
    return Tree(root, warnings)


def local(element: etree._Element) -> str:
    """The element's name in lower case without its namespace, "" for comments and the like."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def attribute(element: etree._Element, name: str, namespace: str = EPUB_NS, prefix: str = "epub") -> str:
    """A namespaced attribute, however the parser at hand spells it."""
    return element.get(f"{{{namespace}}}{name}") or element.get(f"{prefix}:{name}") or ""


def types_of(element: etree._Element) -> frozenset[str]:
    """The words of epub:type and the DPUB roles of an element, without their prefixes."""
    words = attribute(element, "type").split()
    words += [w.removeprefix("doc-") for w in (element.get("role") or "").split() if w.startswith("doc-")]
    return frozenset(w.rpartition(":")[2] for w in words)


def language_of(element: etree._Element) -> str:
    """xml:lang or lang of an element, "" if it has none."""
    return (element.get(f"{{{XML_NS}}}lang") or element.get("xml:lang") or element.get("lang") or "").strip()


_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


def css_hidden(sheets: list[str]) -> dict[str, str]:
    """Simple selectors (`.name`, `#id`, `tag.name`) that style sheets hide or mark as not spoken, with the reason."""
    found: dict[str, str] = {}
    for sheet in sheets:
        sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.S)
        sheet = re.sub(
            r"@media[^{]*\b(?:print|handheld|amzn-mobi|amzn-kf8)\b[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}",
            "",
            sheet,
            flags=re.S,
        )
        for selectors, body in _RULE.findall(sheet):
            reason = css_reason(body)
            for selector in selectors.split(","):
                selector = selector.strip()
                if re.fullmatch(r"(?:[A-Za-z][\w-]*)?[.#][\w-]+", selector):
                    if reason:
                        found[selector] = reason
                    elif re.search(r"(?:^|;)\s*display\s*:", body):
                        found.pop(selector, None)  # a later rule shows it again
    return found


def css_reason(declarations: str) -> str:
    """Why CSS declarations keep text from being read, "" if they do not."""
    if re.search(r"(?:^|;)\s*display\s*:\s*none|(?:^|;)\s*visibility\s*:\s*hidden", declarations, re.I):
        return "hidden in the source"
    if re.search(r"(?:^|;)\s*(?:-epub-)?speak(?:-as)?\s*:\s*none", declarations, re.I):
        return "marked as not spoken in the source"
    return ""
