"""Formulas as MathML, made while the site is built: browsers show it without any script.

`$…$` is a formula in a line and a `math` block one of its own, as on GitHub.
"""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig

BEFORE_ESCAPES, FORMULA = 185, r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?!\w)"


def block(source: str, *_: Any, **__: Any) -> str:
    """A formula of its own."""
    return f'<div class="formula">{convert(source.strip(), display="block")}</div>'


class _Inline(InlineProcessor):
    def handleMatch(self, m: Any, data: str) -> tuple[str, int, int]:
        return self.md.htmlStash.store(convert(m.group(1))), m.start(0), m.end(0)


class Formulas(Extension):
    """`$…$` in a line of Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Look for formulas before backslashes are taken for escapes, and after code."""
        md.inlinePatterns.register(_Inline(FORMULA, md), "formula", BEFORE_ESCAPES)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add both to the extensions of mkdocs.yml."""
    config.markdown_extensions.append(Formulas())  # type: ignore[arg-type]
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": block}]
    return config
