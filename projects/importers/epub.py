"""EPUB 2 and 3: the spine in reading order, chapters from the table of contents with its fragments."""

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import unquote

from lxml import etree

from projects.text.languages import language_guess, language_tag

from .archive import Archive
from .base import ImportRefused, ParsedBook
from .flow import Flow, Walker
from .markup import Tree, css_hidden, html_tree, language_of, local, types_of, xml_tree
from .structure import About, Draft, book_finish, cut_at, drafts_by_headings, headings_guess, title_words

CONTAINER = "META-INF/container.xml"
FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Fonts scrambled with a published key: no copy protection."""

_MARKUP = (
    "application/xhtml+xml",
    "text/html",
    "text/x-oeb1-document",
    "application/x-dtbook+xml",
    "application/xml",
    "text/xml",
)
_DC = "{http://purl.org/dc/elements/1.1/}"


@dataclass
class Item:
    """An item of the manifest."""

    identity: str
    href: str
    path: str | None  # name in the archive, None = missing
    media_type: str
    properties: frozenset[str]


@dataclass
class Entry:
    """An entry of the table of contents."""

    title: str
    path: str | None  # name in the archive; None = a title without a target
    fragment: str
    depth: int
    types: frozenset[str] = frozenset()
    children: list["Entry"] = field(default_factory=list)


@dataclass
class Package:
    """What the package document says."""

    path: str
    items: dict[str, Item]
    spine: list[tuple[Item, bool]]  # (item, linear)
    about: About
    nav: Item | None
    ncx: Item | None
    guide: dict[tuple[str, str], frozenset[str]]  # (path, fragment) → types


class EpubImporter:
    """EPUB files, also those whose folder was zipped along, and those with broken pages."""

    name = "epub"
    extensions = (".epub", ".kepub")

    def score(self, head: bytes, name: str) -> float:
        if head[:4] == b"PK\x03\x04":
            if b"mimetypeapplication/epub+zip" in head[:80] or b"application/epub+zip" in head[:200]:
                return 1.0
            if b"META-INF/container.xml" in head:
                return 0.9
        return 0.8 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        archive = Archive(file)
        warnings: list[str] = []
        package = _package(archive, warnings)
        _refuse_protected(archive, package)
        return _Reader(archive, package, warnings, name).read()


# ---------------------------------------------------------------- the package


def _package(archive: Archive, warnings: list[str]) -> Package:
    path = _package_path(archive, warnings)
    tree = xml_tree(archive.read(path), path)
    warnings += tree.warnings
    root = tree.root
    items: dict[str, Item] = {}
    for element in root.iter():
        if local(element) != "item" or not element.get("href"):
            continue
        href = element.get("href") or ""
        items.setdefault(
            element.get("id") or href,
            Item(
                element.get("id") or href,
                href,
                archive.resolve(path, href) if not re.match(r"[a-z][a-z0-9+.-]*:", href, re.I) else None,
                (element.get("media-type") or "").strip().lower(),
                frozenset((element.get("properties") or "").split()),
            ),
        )
    spine: list[tuple[Item, bool]] = []
    seen: set[str] = set()
    spine_element = next((e for e in root.iter() if local(e) == "spine"), None)
    for element in spine_element if spine_element is not None else ():
        if local(element) != "itemref":
            continue
        identity = element.get("idref") or ""
        item = items.get(identity)
        if item is None:
            warnings.append(f"The reading order names “{identity}”, which the book does not have.")
            continue
        key = item.path or item.href
        if key in seen:
            warnings.append(f"{item.href} stands in the reading order twice; it is read once.")
            continue
        seen.add(key)
        spine.append((item, (element.get("linear") or "yes").strip().lower() != "no"))
    if not spine:
        for item in items.values():
            if item.media_type in _MARKUP and "nav" not in item.properties:
                spine.append((item, True))
        if spine:
            warnings.append("The book names no reading order; its files are read in the order of its list.")
    nav = next((i for i in items.values() if "nav" in i.properties and i.path), None)
    ncx = items.get(spine_element.get("toc") or "") if spine_element is not None else None
    if ncx is None or not ncx.path:
        ncx = next((i for i in items.values() if i.media_type == "application/x-dtbncx+xml" and i.path), None)
    if ncx is None:
        ncx = next((i for i in items.values() if i.href.lower().endswith(".ncx") and i.path), None)
    guide: dict[tuple[str, str], frozenset[str]] = {}
    for element in root.iter():
        if local(element) == "reference" and element.get("href"):
            target = archive.resolve(path, element.get("href") or "")
            if target:
                word = (element.get("type") or "").lower()
                word = {
                    "title-page": "titlepage",
                    "copyright-page": "copyright-page",
                    "acknowledgements": "acknowledgments",
                    "text": "bodymatter",
                    "start": "bodymatter",
                }.get(word, word)
                place = (target, unquote((element.get("href") or "").partition("#")[2]))
                guide[place] = guide.get(place, frozenset()) | {word}
    about = _about(root, items, archive, warnings)
    return Package(path, items, spine, about, nav, ncx, guide)


def _package_path(archive: Archive, warnings: list[str]) -> str:
    container = archive.find(CONTAINER)
    prefix = ""
    if container is None:
        nested = [n for n in archive.names if n.endswith("/" + CONTAINER)]
        if len(nested) == 1:
            container = nested[0]
            prefix = container[: -len(CONTAINER)]
            warnings.append("The book was zipped together with its folder; that was seen through.")
    if container is not None:
        tree = xml_tree(archive.read(container), container)
        for element in tree.root.iter():
            if local(element) == "rootfile" and element.get("full-path"):
                path = element.get("full-path") or ""
                found = archive.find(prefix + unquote(path), prefix + path, prefix + path.lstrip("/"))
                if found:
                    return found
    packages = [n for n in archive.names if n.lower().endswith(".opf") and not n.startswith("__MACOSX/")]
    if len(packages) == 1 or (packages and container is not None):
        warnings.append("The container file does not lead to the package; it was found by its name.")
        return packages[0]
    raise ImportRefused("not_an_epub", "The archive is no EPUB: it has no package document.")


def _refuse_protected(archive: Archive, package: Package) -> None:
    prefix = ""
    nested = next((n for n in archive.names if n.endswith("META-INF/encryption.xml")), None)
    documents = {item.path for item, _ in package.spine if item.path}
    if any(archive.encrypted(path) for path in documents):
        raise ImportRefused("password_protected", "The archive is protected with a password.")
    if nested is None:
        return
    prefix = nested[: -len("META-INF/encryption.xml")]
    tree = xml_tree(archive.read(nested), nested)
    for data in tree.root.iter():
        if local(data) != "encrypteddata":
            continue
        algorithm = next(
            (e.get("Algorithm") or "" for e in data.iter() if local(e) == "encryptionmethod"), ""
        )
        if algorithm in FONT_OBFUSCATION:
            continue
        for reference in data.iter():
            if local(reference) == "cipherreference":
                target = archive.find(
                    prefix + unquote(reference.get("URI") or ""), prefix + (reference.get("URI") or "")
                )
                if target in documents or target == package.path:
                    raise ImportRefused(
                        "drm_protected",
                        "The book is copy-protected (DRM): its text is encrypted and cannot be imported.",
                    )


# ---------------------------------------------------------------- metadata


def _about(root: etree._Element, items: dict[str, Item], archive: Archive, warnings: list[str]) -> About:
    about = About()
    refined: dict[str, dict[str, str]] = {}
    named: dict[str, str] = {}
    properties: dict[str, list[tuple[str, str]]] = {}
    metadata = next((e for e in root.iter() if local(e) == "metadata"), None)
    if metadata is None:
        return about
    for meta in metadata.iter():
        if local(meta) != "meta":
            continue
        value = " ".join("".join(meta.itertext()).split())
        name = meta.get("property") or ""
        target = (meta.get("refines") or "").lstrip("#")
        if name and target:
            if name == "role" and refined.get(target, {}).get("role"):
                value = refined[target]["role"] + " " + value
            refined.setdefault(target, {})[name] = value
        elif name:
            properties.setdefault(name, []).append((value, meta.get("id") or ""))
        elif meta.get("name"):
            named[(meta.get("name") or "").lower()] = (meta.get("content") or "").strip()

    def words(element: etree._Element) -> str:
        return " ".join("".join(element.itertext()).split())

    def refinement(element: etree._Element, name: str) -> str:
        return refined.get(element.get("id") or "", {}).get(name, "")

    titles: list[tuple[str, str]] = []
    authors: list[tuple[int, str]] = []
    for element in metadata.iter():
        tag = element.tag if isinstance(element.tag, str) else ""
        name, value = local(element), words(element) if tag else ""
        if not tag or not value or name == "meta":
            continue
        opf_role = next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == "role"), "")
        roles = f"{refinement(element, 'role')} {opf_role}".split()
        if name == "title":
            titles.append((value, refinement(element, "title-type")))
        elif name == "creator":
            if not roles or "aut" in roles or "author" in [r.lower() for r in roles]:
                sequence = refinement(element, "display-seq")
                authors.append((int(sequence) if sequence.isdigit() else 99, value))
            elif "trl" in roles and not about.translator:
                about.translator = value
        elif name == "contributor":
            if "trl" in roles and not about.translator:
                about.translator = value
            elif "aut" in roles:
                authors.append((99, value))
        elif name == "language" and not about.language:
            about.language = language_tag(value)
        elif name == "publisher" and not about.publisher:
            about.publisher = value
        elif name == "description" and not about.description:
            about.description = _plain(value)
        elif name == "rights" and not about.rights:
            about.rights = value
        elif name == "date":
            event = next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == "event"), "")
            if (
                (not about.year or event == "publication")
                and event != "modification"
                and (found := re.search(r"\b(\d{4})\b", value))
            ):
                about.year = found[1]
        elif name == "identifier":
            digits = re.sub(r"[^0-9Xx]", "", value.rpartition(":")[2])
            if (
                re.fullmatch(r"97[89]\d{10}|\d{9}[\dXx]", digits)
                and not about.isbn
                and ("isbn" in " ".join([value, *element.attrib.values()]).lower() or len(digits) == 13)
            ):
                about.isbn = digits
    about.authors = tuple(dict.fromkeys(name for _, name in sorted(authors, key=lambda a: a[0])))
    main = (
        next((t for t, kind in titles if kind == "main"), "")
        or next((t for t, kind in titles if not kind), "")
        or (titles[0][0] if titles else "")
    )
    about.title = main
    about.subtitle = next((t for t, kind in titles if kind == "subtitle"), "")
    for value, identity in properties.get("belongs-to-collection", []):
        if refined.get(identity, {}).get("collection-type", "series") == "series" and not about.series:
            about.series = value
            about.series_position = refined.get(identity, {}).get("group-position", "")
    if named.get("calibre:series"):
        about.series = about.series or named["calibre:series"]
        about.series_position = about.series_position or re.sub(
            r"\.0+$", "", named.get("calibre:series_index", "")
        )
    _cover(about, items, named, archive)
    return about


def _plain(markup: str) -> str:
    """A description without its markup."""
    if "<" in markup:
        markup = re.sub(r"<\s*(?:br|/p|/div|/li)\b[^>]*>", "\n", markup, flags=re.I)
        markup = re.sub(r"<[^>]+>", "", markup)
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", markup)).strip()


def _cover(about: About, items: dict[str, Item], named: dict[str, str], archive: Archive) -> None:
    candidates = [i for i in items.values() if "cover-image" in i.properties]
    if named.get("cover") in items:
        candidates.append(items[named["cover"]])
    candidates += [
        i
        for i in items.values()
        if i.media_type in ("image/jpeg", "image/png") and re.search(r"cover", i.href + i.identity, re.I)
    ]
    for item in candidates:
        if not item.path:
            continue
        try:
            data = archive.read(item.path, limit=30_000_000)
        except ImportRefused:
            continue
        for start, media_type in ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png")):
            if data.startswith(start):
                about.cover, about.cover_type = data, media_type
                return


# ---------------------------------------------------------------- contents


def _entries_nav(
    tree: Tree, path: str, archive: Archive
) -> tuple[list[Entry], dict[tuple[str, str], frozenset[str]], dict[tuple[str, str], str]]:
    """The contents, landmarks and page list of an EPUB 3 navigation document."""
    contents: list[Entry] = []
    landmarks: dict[tuple[str, str], frozenset[str]] = {}
    pages: dict[tuple[str, str], str] = {}
    for nav in tree.root.iter():
        if local(nav) != "nav":
            continue
        types = types_of(nav)
        top = next((e for e in nav.iter() if local(e) in ("ol", "ul")), None)
        if top is None:
            continue
        if "landmarks" in types or "page-list" in types or "pagelist" in types:
            for link in top.iter():
                if local(link) == "a" and link.get("href"):
                    target = archive.resolve(path, link.get("href") or "")
                    key = (target or "", unquote((link.get("href") or "").partition("#")[2]))
                    if "landmarks" in types:
                        landmarks[key] = landmarks.get(key, frozenset()) | types_of(link)
                    else:
                        pages[key] = " ".join("".join(link.itertext()).split())
        elif "toc" in types or (not types and not contents):
            contents = _entries_list(top, path, archive, 0)
    return contents, landmarks, pages


def _entries_list(top: etree._Element, path: str, archive: Archive, depth: int) -> list[Entry]:
    entries: list[Entry] = []
    for item in top:
        if local(item) != "li":
            continue
        label = next((c for c in item if local(c) in ("a", "span", "p", "div")), None)
        link = (
            label
            if label is not None and local(label) == "a"
            else next((e for e in item.iter() if local(e) == "a"), None)
            if label is not None and local(label) not in ("span",)
            else None
        )
        below = [c for c in item if local(c) in ("ol", "ul")]
        title = _label(label if label is not None else item)
        href = (link.get("href") or "") if link is not None else ""
        target = archive.resolve(path, href) if href else None
        entry = Entry(
            title,
            target,
            unquote(href.partition("#")[2]),
            depth,
            types_of(link) if link is not None else frozenset(),
        )
        for inner in below:
            entry.children += _entries_list(inner, path, archive, depth + 1)
        if href and target is None:
            entry.path = "?" + href
        entries.append(entry)
    return entries


def _label(element: etree._Element) -> str:
    """The text of a label; a picture in it by its alternative text; what is below it in the list does not count."""
    words: list[str] = []

    def collect(node: etree._Element) -> None:
        if local(node) in ("ol", "ul", "rt", "rp", "script", "style"):
            return
        if local(node) == "br":
            words.append(" ")
        if local(node) == "img":
            words.append(" " + (node.get("alt") or "") + " ")
        if node.text and local(node):
            words.append(node.text)
        for child in node:
            collect(child)
            if child.tail:
                words.append(child.tail)

    collect(element)
    title = " ".join("".join(words).replace("\u00ad", "").split())
    return title or " ".join((element.get("title") or "").split())


def _entries_ncx(tree: Tree, path: str, archive: Archive) -> tuple[list[Entry], dict[tuple[str, str], str]]:
    """The contents and page list of an EPUB 2 NCX."""

    def entries(parent: etree._Element, depth: int) -> list[Entry]:
        found = []
        for point in parent:
            if local(point) != "navpoint":
                continue
            label = next((e for e in point if local(e) == "navlabel"), None)
            content = next((e for e in point if local(e) == "content"), None)
            src = (content.get("src") or "") if content is not None else ""
            target = archive.resolve(path, src) if src else None
            entry = Entry(
                " ".join("".join(label.itertext()).split()) if label is not None else "",
                target if target or not src else "?" + src,
                unquote(src.partition("#")[2]),
                depth,
            )
            entry.children = entries(point, depth + 1)
            found.append(entry)
        return found

    top = next((e for e in tree.root.iter() if local(e) == "navmap"), None)
    pages: dict[tuple[str, str], str] = {}
    for point in tree.root.iter():
        if local(point) == "pagetarget":
            content = next((e for e in point if local(e) == "content"), None)
            label = next((e for e in point if local(e) == "navlabel"), None)
            src = (content.get("src") or "") if content is not None else ""
            target = archive.resolve(path, src) if src else None
            if target:
                text = (
                    " ".join("".join(label.itertext()).split())
                    if label is not None
                    else point.get("value") or ""
                )
                pages[target, unquote(src.partition("#")[2])] = text
    return (entries(top, 0) if top is not None else []), pages


def _flat(entries: list[Entry]) -> list[Entry]:
    found = []
    for entry in entries:
        found.append(entry)
        found += _flat(entry.children)
    return found


# ---------------------------------------------------------------- reading


class _Reader:
    """Reads the documents of one book."""

    def __init__(self, archive: Archive, package: Package, warnings: list[str], name: str) -> None:
        self.archive, self.package, self.warnings, self.name = archive, package, warnings, name
        self.sheets: dict[str, str] = {}
        self.contents: list[Entry] = []
        self.types: dict[tuple[str, str], frozenset[str]] = dict(package.guide)
        self.pages: dict[tuple[str, str], str] = {}

    def read(self) -> ParsedBook:
        self._navigation()
        trees = self._trees()
        if not trees:
            raise ImportRefused("no_readable_text", "None of the pages of the book can be read.")
        notes = self._note_targets(trees)
        flows: list[tuple[Flow, bool]] = []
        page = ""
        for path, tree, linear in trees:
            flow = self._flow(path, tree, notes, page if linear else "")
            if linear:
                page = flow.page
            flows.append((flow, linear))
        about = self.package.about
        if not about.language:
            tags = Counter(f.language for f, _ in flows if f.language)
            about.language = (
                tags.most_common(1)[0][0]
                if tags
                else language_guess(" ".join(b.text for f, _ in flows for b in f.blocks[:80]))
            )
        for flow, _ in flows:
            for block in flow.blocks:
                if (
                    not block.language
                    and flow.language
                    and flow.language.split("-")[0] != about.language.split("-")[0]
                ):
                    block.language = flow.language
        drafts = self._drafts(flows)
        return book_finish(
            drafts,
            about,
            flows=[f for f, _ in flows],
            warnings=[*self.warnings, *(w for f, _ in flows for w in f.warnings)],
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
            contents_titles=True,
            lexicon=self._lexicon(),
        )

    def _navigation(self) -> None:
        package = self.package
        if package.nav and package.nav.path:
            try:
                tree = html_tree(self.archive.read(package.nav.path), package.nav.path)
                self.contents, landmarks, self.pages = _entries_nav(tree, package.nav.path, self.archive)
                for key, words in landmarks.items():
                    self.types[key] = self.types.get(key, frozenset()) | words
            except ImportRefused as exc:
                self.warnings.append(f"The table of contents cannot be read: {exc.message}")
        if package.ncx and package.ncx.path and (not _flat(self.contents) or not self.pages):
            try:
                entries, pages = _entries_ncx(
                    xml_tree(self.archive.read(package.ncx.path), package.ncx.path),
                    package.ncx.path,
                    self.archive,
                )
            except ImportRefused as exc:
                if not self.contents:
                    self.warnings.append(f"The table of contents cannot be read: {exc.message}")
            else:
                self.contents = self.contents or entries
                self.pages = self.pages or pages
        if not _flat(self.contents):
            self.warnings.append(
                "The book has no table of contents; its chapters are told from its headings."
            )

    def _trees(self) -> list[tuple[str, Tree, bool]]:
        trees = []
        for item, linear in self.package.spine:
            if item.path is None:
                self.warnings.append(
                    f"{item.href} is in the reading order but missing from the file: its text is not in this book."
                )
                continue
            if (
                item.media_type
                and item.media_type not in _MARKUP
                and not item.path.lower().endswith((".xhtml", ".html", ".htm", ".xml"))
            ):
                if item.media_type != "image/svg+xml" and not item.media_type.startswith("image/"):
                    self.warnings.append(f"{item.href} is of a kind that cannot be read ({item.media_type}).")
                continue
            try:
                trees.append((item.path, html_tree(self.archive.read(item.path), item.path), linear))
            except ImportRefused as exc:
                if exc.code in ("unsafe_archive", "password_protected"):
                    raise
                self.warnings.append(f"{item.href} cannot be read: {exc.message}")
        return trees

    def _note_targets(self, trees: list[tuple[str, Tree, bool]]) -> dict[str, frozenset[str]]:
        """Ids that marks of notes point at, by document."""
        found: dict[str, set[str]] = {}
        for path, tree, _ in trees:
            for link in tree.root.iter():
                if local(link) != "a" or not link.get("href"):
                    continue
                strong = "noteref" in types_of(link)
                if not strong:
                    text = "".join(link.itertext()).strip()
                    parent = link.getparent()
                    raised = (parent is not None and local(parent) == "sup") or any(
                        local(e) == "sup" for e in link
                    )
                    if not (raised and re.fullmatch(r"[\[(]?(?:\d{1,4}|[*†‡§]+|[a-z])[\])]?", text)):
                        continue
                href = link.get("href") or ""
                target = self.archive.resolve(path, href)
                fragment = unquote(href.partition("#")[2])
                if target and fragment:
                    found.setdefault(target, set()).add(fragment)
        # A mark and its note point at each other: the one that comes first in the book is the mark.
        for path, tree, _ in trees:
            mine = found.get(path)
            if not mine:
                continue
            for element in tree.root.iter():
                if (
                    element.get("id") in mine
                    and (
                        local(element) in ("a", "sup", "span")
                        and ("noteref" in types_of(element) or any("noteref" in types_of(e) for e in element))
                    )
                ) or (element.get("id") in mine and local(element) in ("h1", "h2", "h3", "h4", "body")):
                    mine.discard(element.get("id") or "")
        return {path: frozenset(ids) for path, ids in found.items()}

    def _flow(self, path: str, tree: Tree, notes: dict[str, frozenset[str]], page: str) -> Flow:
        pages = {
            fragment: label for (target, fragment), label in self.pages.items() if target == path and fragment
        }

        def is_note(href: str) -> bool:
            target = self.archive.resolve(path, href)
            return bool(target) and unquote(href.partition("#")[2]) in notes.get(target or "", frozenset())

        walker = Walker(
            path,
            language=language_tag(language_of(tree.root)),
            hidden=self._hidden(path, tree),
            notes=notes.get(path, frozenset()),
            pages=pages,
            page=self.pages.get((path, ""), page),
            note_target=is_note,
        )
        flow = walker.walk(tree.root)
        flow.warnings += tree.warnings
        return flow

    def _hidden(self, path: str, tree: Tree) -> dict[str, str]:
        sheets = []
        for element in tree.root.iter():
            if (
                local(element) == "link"
                and "stylesheet" in (element.get("rel") or "").split()
                and "alternate" not in (element.get("rel") or "")
            ):
                target = self.archive.resolve(path, element.get("href") or "")
                if target:
                    if target not in self.sheets:
                        try:
                            self.sheets[target] = self.archive.read(target, limit=2_000_000).decode(
                                "utf-8", "replace"
                            )
                        except ImportRefused:
                            self.sheets[target] = ""
                    sheets.append(self.sheets[target])
            elif local(element) == "style":
                sheets.append("".join(element.itertext()))
        return css_hidden(sheets)

    # ------------------------------------------------------------ chapters

    def _drafts(self, flows: list[tuple[Flow, bool]]) -> list[Draft]:
        linear = [f for f, is_linear in flows if is_linear]
        where = {flow.name: number for number, flow in enumerate(linear)}
        cuts = self._cuts(linear, where)
        drafts = self._cut(linear, cuts) if cuts else self._by_headings(linear)
        for flow, is_linear in flows:
            if not is_linear and flow.blocks:
                title = next((e.title for e in _flat(self.contents) if e.path == flow.name), "")
                drafts.append(Draft(title, flow.blocks, linear=False, source=flow.name, types=flow.types))
        return drafts

    def _cuts(self, flows: list[Flow], where: dict[str, int]) -> list[tuple[int, int, Entry]]:
        """(document, block, entry) for each entry of the contents that leads into the reading order, in order."""
        entries = [e for e in _flat(self.contents) if e.path]
        nonlinear = {item.path for item, is_linear in self.package.spine if not is_linear}
        wanted: list[tuple[Entry, int]] = []
        for entry in entries:
            number = where.get(entry.path or "")
            if number is None:
                if entry.path not in nonlinear and not (
                    self.package.nav and entry.path == self.package.nav.path
                ):
                    self.warnings.append(
                        f"The contents lead to “{(entry.path or '').lstrip('?')}”, which is not in the reading order."
                    )
                continue
            wanted.append((entry, number))
        # Cut blocks first, from the end, so that the places found stay valid.
        by_flow: dict[int, list[tuple[int, int]]] = {}
        for entry, number in wanted:
            place = flows[number].anchors.get(entry.fragment) if entry.fragment else None
            if place and place[1] > 0:
                by_flow.setdefault(number, []).append(place)
        for number, places in by_flow.items():
            for index, offset in sorted(set(places), reverse=True):
                cut_at(flows[number], index, offset)
        cuts = []
        for entry, number in wanted:
            flow = flows[number]
            index = 0
            if entry.fragment:
                place = flow.anchors.get(entry.fragment)
                if place:
                    index = place[0] if place[1] <= 0 else min(place[0] + 1, len(flow.blocks))
                else:
                    index = _by_title(flow, entry.title)
                    if index < 0:
                        index = 0
                        if any(e is not entry and n == number for e, n in wanted):
                            self.warnings.append(
                                f"The contents lead to a place in {flow.name} that does not exist (“{entry.title}”)."
                            )
                            continue
            cuts.append((number, index, entry))
        order = {id(e): i for i, (e, _) in enumerate(wanted)}
        cuts.sort(key=lambda c: (c[0], c[1], order[id(c[2])]))
        return cuts

    def _cut(self, flows: list[Flow], cuts: list[tuple[int, int, Entry]]) -> list[Draft]:
        drafts: list[Draft] = []
        entries: dict[tuple[int, int], list[Entry]] = {}
        for number, index, entry in cuts:
            entries.setdefault((number, index), []).append(entry)
        started = False
        for number, flow in enumerate(flows):
            at_start = [i for (n, i) in entries if n == number]
            if not at_start or min(at_start) > 0:
                self._unlisted(drafts, flow, min(at_start, default=len(flow.blocks)), started)
            for index in sorted(at_start):
                after = min((i for i in at_start if i > index), default=len(flow.blocks))
                drafts += self._listed(entries[number, index], flow, index, after)
                started = True
        return drafts

    def _listed(self, entries: list[Entry], flow: Flow, index: int, after: int) -> list[Draft]:
        """The chapters that begin at one place: the innermost has the text, those around it are parts without."""
        blocks = flow.blocks[index:after]
        made: list[Draft] = []
        *outer, inner = entries
        for entry in outer:
            # An entry above the innermost one: it owns the leading headings that are its title.
            taken = 0
            if (
                blocks
                and blocks[0].kind == "heading"
                and title_words(blocks[0].text) == title_words(entry.title)
                and title_words(entry.title) != title_words(inner.title)
            ):
                taken = 1
            if taken:
                made.append(self._draft(entry, flow, blocks[:taken]))
                blocks = blocks[taken:]
        made.append(self._draft(inner, flow, blocks))
        return made

    def _draft(self, entry: Entry, flow: Flow, blocks: list) -> Draft:
        types = entry.types | self.types.get((flow.name, entry.fragment), frozenset())
        if not entry.fragment or blocks[:1] == flow.blocks[:1]:
            types |= self.types.get((flow.name, ""), frozenset())
        return Draft(
            entry.title,
            list(blocks),
            depth=entry.depth,
            types=types - {"bodymatter", "frontmatter", "backmatter"},
            group=any(c.path for c in _flat(entry.children)),
            source=flow.name,
        )

    def _unlisted(self, drafts: list[Draft], flow: Flow, end: int, started: bool) -> None:
        """Text that no entry of the contents leads to: it goes on with the chapter before, or stands by itself."""
        blocks = flow.blocks[:end]
        if not blocks:
            return
        types = flow.types | self.types.get((flow.name, ""), frozenset())
        head = next((b for b in blocks if b.read or b.kind == "heading"), None)
        marked = types & {
            "copyright-page",
            "titlepage",
            "cover",
            "colophon",
            "imprint",
            "toc",
            "index",
            "endnotes",
            "footnotes",
            "rearnotes",
            "halftitlepage",
            "dedication",
            "epigraph",
            "acknowledgments",
            "bibliography",
            "loi",
            "chapter",
            "part",
        }
        marked |= blocks[0].types & {
            "copyright-page",
            "titlepage",
            "colophon",
            "imprint",
            "toc",
            "index",
            "endnotes",
            "footnotes",
            "rearnotes",
            "halftitlepage",
            "dedication",
            "acknowledgments",
            "bibliography",
            "loi",
            "chapter",
            "part",
        }
        begins = head is not None and head.kind == "heading" and not self._goes_on(drafts, head)
        if drafts and started and not marked and not begins:
            drafts[-1].blocks += blocks
            return
        if (
            drafts
            and not started
            and not drafts[-1].listed
            and end < len(flow.blocks)
            and not marked
            and not begins
        ):
            drafts.append(
                Draft(
                    "",
                    list(blocks),
                    types=types - {"bodymatter", "frontmatter", "backmatter"},
                    listed=False,
                    source=flow.name,
                )
            )
            return
        title = ""
        if head is not None and head.kind == "heading":
            title = " ".join(head.text.split())
        drafts.append(
            Draft(
                title,
                list(blocks),
                types=types - {"bodymatter", "frontmatter", "backmatter"},
                listed=False,
                source=flow.name,
            )
        )

    @staticmethod
    def _goes_on(drafts: list[Draft], head) -> bool:
        """Is a heading at the top of an unlisted file below the headings that begin chapters?"""
        levels = [next((b.level for b in d.blocks if b.kind == "heading"), 0) for d in drafts if d.listed]
        levels = [level for level in levels if level]
        return bool(levels) and head.level > max(levels)

    def _by_headings(self, flows: list[Flow]) -> list[Draft]:
        blocks = [b for f in flows for b in f.blocks]
        headings_guess(blocks)
        if any(b.kind == "heading" and b.read for b in blocks):
            return drafts_by_headings(blocks, self.package.about.title)
        return [
            Draft(
                "",
                f.blocks,
                listed=False,
                source=f.name,
                types=f.types | self.types.get((f.name, ""), frozenset()),
            )
            for f in flows
            if f.blocks
        ]

    def _lexicon(self) -> list[tuple[str, str, str, str]]:
        """Pronunciations from the lexicons (PLS) in the book."""
        found = []
        for item in self.package.items.values():
            if item.path and (item.media_type == "application/pls+xml" or item.path.lower().endswith(".pls")):
                try:
                    tree = xml_tree(self.archive.read(item.path, limit=5_000_000), item.path)
                except ImportRefused:
                    self.warnings.append(f"The pronunciation lexicon {item.href} cannot be read.")
                    continue
                found += pls_entries(tree.root)
        return found


def _by_title(flow: Flow, title: str) -> int:
    """The block that is a heading with this title, -1 if there is none."""
    words = title_words(title)
    for index, block in enumerate(flow.blocks):
        if words and len(block.text) < 200 and title_words(block.text) == words:
            return index
    return -1


def pls_entries(root: etree._Element) -> list[tuple[str, str, str, str]]:
    """(grapheme, alias or phonemes, alphabet or "alias", language) of a PLS lexicon."""
    language = language_tag(language_of(root))
    alphabet = root.get("alphabet") or "ipa"
    found = []
    for lexeme in root.iter():
        if local(lexeme) != "lexeme":
            continue
        graphemes = [" ".join("".join(e.itertext()).split()) for e in lexeme if local(e) == "grapheme"]
        says = [
            (
                " ".join("".join(e.itertext()).split()),
                "alias" if local(e) == "alias" else e.get("alphabet") or alphabet,
            )
            for e in lexeme
            if local(e) in ("phoneme", "alias")
        ]
        if says:
            found += [(g, *says[0], language) for g in graphemes if g]
    return found
