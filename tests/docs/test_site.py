"""The site builds without a warning, needs no network to be read, and shows what the program is now."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from doc_blocks import PAGES, ROOT
from markdown_it import MarkdownIt
from markdown_it.token import Token

PLACES = {"arxiv.org", "pypi.org", "github.com", "huggingface.co"}
"""Where links may lead that are not followed by a test."""
LARGEST = 1_500_000
"""Bytes of all pictures together."""


def load(path: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, warnings being errors: broken links and anchors, pages outside of the menu."""
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return out


class Loaded(HTMLParser):
    """What a browser would fetch for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [given.get(name) or "" for name in ("src", "srcset") if name in given]
        if tag == "link":
            self.addresses.append(given.get("href") or "")


def test_reading_it_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert loaded.addresses
        assert not [each for each in loaded.addresses if urlsplit(each).netloc], page
    for sheet in [*site.rglob("*.css"), *site.rglob("pictures/*.svg")]:
        found = re.findall(r"url\(\s*[\"']?(?:https?:)?//|@import", sheet.read_text("utf-8"))
        assert not found, sheet


def test_every_public_name_and_error_is_in_the_reference(site: Path) -> None:
    import nograd
    from nograd import errors, stats

    page = (site / "api.html").read_text("utf-8")
    names = {*nograd.__all__, *(name for name in vars(errors) if name.endswith("Error"))}
    names |= {name for name in stats.__all__ if name not in ("MARGIN", "DroppedSeed", "summarise", "tost_of")}
    names -= {"t_interval_of"}
    assert [name for name in sorted(names) if not re.search(rf'id="nograd\.[\w.]*\b{name}"', page)] == []


def test_the_command_reference_is_current() -> None:
    script = load("docs/scripts/commands.py")
    assert script.PAGE.read_text("utf-8") == script.render(), "run: python docs/scripts/commands.py"


def test_the_pictures_of_concepts_are_current(tmp_path: Path) -> None:
    load("docs/pictures/concepts.py").draw(tmp_path)
    for picture in tmp_path.iterdir():
        committed = ROOT / "docs" / "pictures" / picture.name
        assert picture.read_bytes() == committed.read_bytes(), "run: python docs/pictures/concepts.py"


def test_a_terminal_picture_holds_what_the_command_prints(tmp_path: Path) -> None:
    script = load("docs/pictures/terminal.py")
    shown = script.Shown(".", "nograd arms", 90)
    drawn = script.picture(shown, script.output(shown, tmp_path), "arms")
    assert "hard_noisy" in drawn
    assert "nograd&#160;arms" in drawn
    assert "http://www.w3.org" in drawn
    assert "cloudflare" not in drawn


def test_pictures_are_small_used_and_described() -> None:
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".svg", ".png")]
    assert sum(path.stat().st_size for path in pictures) < LARGEST
    images = [image for page in PAGES for image in _inline(page, "image")]
    assert all(len(image.content) > 10 for image in images)
    used = {Path(str(image.attrs["src"])).name for image in images}
    assert used == {path.name for path in pictures}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _inline(page, "link_open"):
        address = urlsplit(str(link.attrs["href"]))
        if address.netloc:
            assert address.netloc in PLACES, address.geturl()
            continue
        target = page.parent / address.path if address.path else page
        assert target.exists(), address.geturl()
        if address.fragment:
            assert address.fragment in _anchors(target), address.geturl()


def _inline(page: Path, kind: str) -> list[Token]:
    """All links or images of a page, as tokens."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))
    return [child for token in tokens for child in token.children or () if child.type == kind]


def _anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
