// The search of the site: which sections hold the words that were typed. Runs in a page and, for tests, in node.
"use strict";

// The words of a text, as lunr cuts them. Names of keys and flags stay whole (max_num_seqs) and are found by their parts.
function wordsOf(text) {
  return text.toLowerCase().split(/[^a-z0-9_.]+/).map((word) => word.replace(/^[.]+|[.]+$/g, "")).filter(Boolean);
}

function makeSearch(lunr, sections) {
  const index = lunr(function () {
    this.ref("at");
    this.field("heading", { boost: 8 });
    this.field("page", { boost: 4 });
    this.field("text");
    this.tokenizer = (text) => {
      const parts = wordsOf(String(text)).flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word]));
      return parts.filter(Boolean).map((part) => new lunr.Token(part));
    };
    sections.forEach((section, at) => this.add({ at: String(at), ...section }));
  });
  const stem = (word) => lunr.stemmer(new lunr.Token(word)).toString();

  // The best sections first: those with most of the words, then by lunr's score.
  return (text, most = 12) => {
    const words = [...new Set(wordsOf(text))].filter((word) => lunr.stopWordFilter(new lunr.Token(word)));
    if (words.length === 0) return [];
    const results = index.query((query) => {
      for (const word of words) {
        query.term(word, { boost: 10 });
        query.term(word, { usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING });
      }
    });
    const held = (result) => {
      const terms = Object.keys(result.matchData.metadata);
      return words.filter((word) => terms.some((term) => term.startsWith(word) || term === stem(word))).length;
    };
    return results
      .map((result) => ({ section: sections[result.ref], words: held(result), score: result.score }))
      .sort((a, b) => b.words - a.words || b.score - a.score)
      .slice(0, most);
  };
}

// The text around the first of the words.
function excerptOf(section, text, length = 140) {
  const lower = section.text.toLowerCase();
  const places = wordsOf(text).map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const begin = Math.max(0, (places.length ? Math.min(...places) : 0) - 40);
  return (begin > 0 ? "... " : "") + section.text.slice(begin, begin + length);
}

function showSearch(document, lunr, sections) {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const root = document.body.dataset.root;
  let search = null;
  const show = () => {
    search ??= makeSearch(lunr, sections);  // made when it is needed first: a few tenths of a second
    const found = search(input.value);
    list.replaceChildren(...found.map(({ section }) => {
      const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
      link.href = root + section.url;
      link.textContent = section.page === section.heading ? section.page : `${section.page}: ${section.heading}`;
      text.textContent = excerptOf(section, input.value);
      item.append(link, text);
      return item;
    }));
    if (found.length === 0 && input.value.trim() !== "") {
      const nothing = document.createElement("li");
      nothing.textContent = "Nothing found.";
      list.append(nothing);
    }
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.value = "", show();
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) event.preventDefault(), input.focus();
  });
  if (window.innerWidth <= 800) document.getElementById("menu").open = false;
  const asked = new URLSearchParams(document.location.search).get("q");  // index.html?q=words
  if (asked) input.value = asked, show();
}

if (typeof module !== "undefined") module.exports = { makeSearch, excerptOf };
else showSearch(document, lunr, searchSections);
