"""Builds the site of the docs and follows every link in it; tries its search in node and, if available, in Chromium.

usage: site_test.py ROOT
Exits with 77 if docs/make-site lacks a dependency.
"""

import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(sys.argv[1]).resolve()

# Search words, and the section that must come first.
QUERIES = {
    "kv_offload": "docs/serving.html#row-kv_offload-kv_tiers",
    "max_num_seqs": "docs/serving.html#row-max_num_seqs",
    "prefix cach": "docs/serving.html#prefix-caching",  # a word under way
    "make package": "docs/installing.html#making-the-packages",  # other forms of the words
    "Where are the specs?": "docs/installing.html#where-the-specs-are",
    "--emit kubernetes": "docs/planning.html#the-answer",
    "zzzqqq": None,
    "-+:~^*": None,
}

SEARCH = """
const fs = require("fs"), folder = process.argv[1], queries = JSON.parse(process.argv[2]);
const sections = new Function(fs.readFileSync(folder + "/search_index.js", "utf8") + "return searchSections;")();
const search = require(folder + "/search.js").makeSearch(require(folder + "/lunr.js"), sections);
console.log(JSON.stringify(queries.map((query) => search(query, 1).map((found) => found.section.url))));
"""


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.repeated = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.repeated.append(value)
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def broken_links(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    wrong, total = [], 0
    for path, page in pages.items():
        wrong += [f"{path.relative_to(site)}: two parts have the name '{name}'" for name in page.repeated]
        for link in page.links:
            if urllib.parse.urlsplit(link).scheme:
                continue
            total += 1
            file, _, name = link.partition("#")
            target = pathlib.Path(os.path.normpath(path.parent / file)) if file else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link}: no such file")
            elif name and name not in pages[target].ids:
                wrong.append(f"{path.relative_to(site)}: {link}: no such place")
    sections = json.loads((site / "search_index.js").read_text()[len("const searchSections = "):].rstrip(";\n"))
    for section in sections:
        file, _, name = section["url"].partition("#")
        if name not in pages[site / file].ids:
            wrong.append(f"search: {section['url']}: no such place")
    assert total > 1000 and len(sections) > 400, (total, len(sections))
    return wrong


def wrong_answers(site):
    done = subprocess.run(["node", "-e", SEARCH, str(site), json.dumps(list(QUERIES))], capture_output=True, text=True,
                          check=True)
    return [f"'{query}': {found} in place of {expected}"
            for (query, expected), found in zip(QUERIES.items(), json.loads(done.stdout))
            if found != ([expected] if expected else [])]


def in_browser(chromium, site, folder):
    """Opened from disk, with the search words in the address."""
    done = subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={folder}/profile", "--dump-dom",
                           f"file://{site}/docs/guides/tutorial.html?q=kv_offload"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": folder})
    link = "../../" + QUERIES["kv_offload"]
    return [] if f'href="{link}"' in done.stdout else [f"Chromium shows no link to {link}"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        made = subprocess.run([sys.executable, str(ROOT / "docs/make-site"), str(site)])
        if made.returncode != 0:
            sys.exit(made.returncode)
        wrong = broken_links(site)
        if shutil.which("node"):
            wrong += wrong_answers(site)
        if chromium := shutil.which("chromium"):
            wrong += in_browser(chromium, site, folder)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
