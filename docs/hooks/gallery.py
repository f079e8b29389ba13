"""Gallery: a page for every file in examples/, made while the site is built.

The docstring is its text, the file its code, `docs/gallery/NAME.png` its picture where there is
one, and `NAME-phone.png` the same for phones (`docs/hooks/pictures.py` makes them). `gallery.md`
names them all; a test holds that.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = "gallery"


def examples(root: Path) -> list[Path]:
    """The files, by name."""
    return sorted((root / "examples").glob("*.py"))


def page(example: Path, picture: bool) -> str:
    """The page of one example."""
    code = example.read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(code)) or ""
    title, _, rest = about.partition("\n")
    alt = "What the example leads to: its report"
    image = f"{either(f'{example.stem}.png', alt)}\n\n" if picture else ""
    rest = re.sub(r"(?:^    .*\n?)+", _shell, rest, flags=re.M)
    heading = re.split(r"[:,.](?=\s|$)", title)[0]
    return (
        f"# {heading}\n\n{title}\n{rest}\n\n{image}"
        f'```python title="examples/{example.name}"\n{code}```\n\n'
        "[All examples](../gallery.md)\n"
    )


def either(source: str, alt: str) -> str:
    """A picture that is another one on a phone."""
    phone = source.replace(".png", "-phone.png")
    narrow = f'<source media="(max-width: 600px)" srcset="{phone}">'
    return f'<picture>{narrow}<img src="{source}" alt="{alt}"></picture>'


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """In the gallery, every picture has another one for phones."""
    if page.file.src_uri != "gallery.md":
        return markdown
    return re.sub(r"!\[([^\]]*)\]\(([\w/]+\.png)\)", lambda m: either(m[2], m[1]), markdown)


def _shell(lines: re.Match[str]) -> str:
    """Indented lines as a block of commands."""
    return f"```sh\n{textwrap.dedent(lines[0]).rstrip()}\n```\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and list them in the navigation."""
    root = Path(config.config_file_path or ".").resolve().parent
    for example in examples(root):
        picture = (root / "docs" / FOLDER / f"{example.stem}.png").exists()
        own = File.generated(config, f"{FOLDER}/{example.stem}.md", content=page(example, picture))
        files.append(own)
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages below the gallery's own."""
    root = Path(config.config_file_path or ".").resolve().parent
    names = [f"{FOLDER}/{e.stem}.md" for e in examples(root)]
    nav: Any = config.nav
    _below(nav, "gallery.md", names)
    return config


def _below(items: list[Any], wanted: str, names: list[Any]) -> None:
    """Append to the section that begins with a page."""
    for item in items:
        for value in item.values() if isinstance(item, dict) else ():
            if isinstance(value, list):
                if wanted in value:
                    value.extend(names)
                _below(value, wanted, names)
