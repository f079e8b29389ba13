"""Versions of the site side by side: `make docs VERSION=0.1.0` builds one into `site/0.1.0`.

The menu of versions reads `site/versions.json`; `site/index.html` leads to the newest.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

VERSION = re.compile(r"\d+(\.\d+)*\w*")
LEAD = """<!doctype html>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">optpair {0}</a>
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the menu on the site of a version."""
    if os.environ.get("OPTPAIR_DOCS_VERSION"):
        config.extra["version"] = {"provider": "mike", "default": "latest"}
    return config


def newest_first(version: str) -> tuple[int, ...]:
    """What versions are sorted by."""
    return tuple(-int(part) for part in re.findall(r"\d+", version))


def listed(folder: Path) -> list[str]:
    """Write down which versions a folder has, and lead to the newest."""
    found = [p.name for p in folder.iterdir() if VERSION.fullmatch(p.name) and p.is_dir()]
    found.sort(key=newest_first)
    entries = [
        {"version": name, "title": name, "aliases": ["latest"] if i == 0 else []}
        for i, name in enumerate(found)
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(LEAD.format(found[0]), encoding="utf-8")
    return found


if __name__ == "__main__":
    print(", ".join(listed(Path(sys.argv[1]))))
