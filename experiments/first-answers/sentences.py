#!/usr/bin/env python3
"""Lists every sentence that users of LocDiff can read, from the sources.

    python3 experiments/first-answers/sentences.py [ROOT] [--count]

One line per sentence: `path:line<TAB>text`, sorted. `--count` prints {"sentences": N} instead. `{...}` and `${...}` in a
text are values that the program inserts.

Read are: help texts of commands and options, error messages, printed and logged lines, HTTP problems and the descriptions
in /openapi.json, messages of the Python package, and the texts of the page. Tests, examples, benchmarks, comments and
documentation for developers are left out. So are panics and assertions, which no input should reach.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

Text = tuple[int, str]

# --- Rust ------------------------------------------------------------------------------------------------------------

RUST_TOKEN = re.compile(
    r"""
    (?P<doc>///(?!/)[^\n]*)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<raw>b?r(?P<hashes>\#*)"(?P<rawtext>.*?)"(?P=hashes))
  | (?P<string>b?"(?P<text>(?:[^"\\]|\\.)*)")
  | (?P<char>b?'(?:[^'\\\n]|\\(?:u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|.))')
  | (?P<lifetime>'\w+)
  | (?P<word>\w+!?(?=\s*[(\[{])|\w+)
  | (?P<punct>[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)

#: Derives whose documentation comments are shown: by `--help` and at /openapi.json.
SHOWN_DERIVES = re.compile(r"\b(Args|Parser|Subcommand|ValueEnum|ToSchema|IntoParams)\b")
#: Calls and attributes whose texts nobody reads who uses the program.
SILENT_CALLS = {
    "assert!", "assert_eq!", "assert_ne!", "debug_assert!", "debug_assert_eq!", "debug_assert_ne!", "unreachable!", "todo!",
    "panic!", "expect", "expect_err", "allow", "cfg", "cfg_attr", "serde", "doc", "deprecated", "must_use", "include_str!",
    "include_bytes!", "contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "split", "split_once",
    "trim_start_matches", "trim_end_matches", "find", "replace", "execute", "execute_batch", "prepare", "prepare_cached",
    "query_row", "concat!", "matches!", "named", "error_span!", "info_span!", "debug_span!", "trace_span!", "compile_error!",
}  # fmt: skip


def rust_unescaped(text: str) -> str:
    text = re.sub(r"\\\r?\n\s*", "", text)
    named = {"n": "\n", "t": "\t", "r": "", "0": "", '"': '"', "'": "'", "\\": "\\"}

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "ux":
            return chr(int(code.strip("ux{}"), 16))
        return named.get(code, code)

    return re.sub(r"\\(u\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{2}|.)", character, text)


class Rust:
    """The texts of one Rust file, and the files of its modules that only tests have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text("utf-8")
        self.tokens = [match for match in RUST_TOKEN.finditer(self.source) if match["comment"] is None]
        self.line_starts = [match.end() for match in re.finditer("\n", self.source)]
        self.tests: list[Path] = []
        self.texts: list[Text] = []
        self.scan()

    def line(self, offset: int) -> int:
        low, high = 0, len(self.line_starts)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.line_starts[middle] <= offset else (low, middle)
        return low + 1

    def closing(self, start: int) -> int:
        """The index of the token that closes the bracket at `start`."""
        depth = 0
        for index in range(start, len(self.tokens)):
            punct = self.tokens[index]["punct"]
            depth += 1 if punct in ("(", "[", "{") else -1 if punct in (")", "]", "}") else 0
            if depth == 0:
                return index
        return len(self.tokens) - 1

    def module_file(self, name: str) -> list[Path]:
        folder = self.path.parent if self.path.stem in ("mod", "lib", "main") else self.path.with_suffix("")
        return [folder / f"{name}.rs", folder / name]

    def after_item(self, index: int) -> int:
        """The index behind an item of tests."""
        while index < len(self.tokens):
            token = self.tokens[index]
            if token[0] == "mod" and self.tokens[index + 2][0] == ";":
                self.tests += self.module_file(self.tokens[index + 1][0])
            if token["punct"] in ("(", "[", "{"):
                index = self.closing(index)
                if token[0] == "{":
                    return index + 1
            elif token["punct"] in (";", ","):
                return index + 1
            index += 1
        return index

    def add(self, offset: int, text: str) -> None:
        self.texts.append((self.line(offset), text))

    def scan(self) -> None:
        #: For each open bracket: the name before it, and whether comments in it are shown.
        stack: list[tuple[str, bool]] = []
        docs: list[re.Match[str]] = []
        attributes = ""
        shown_next = False
        index = 0
        while index < len(self.tokens):
            token = self.tokens[index]
            punct = token["punct"]
            if token["doc"] is not None:
                docs.append(token)
            elif token[0] == "pub" and self.tokens[index + 1][0] == "(":
                index = self.closing(index + 1)
            elif punct == "#" and index + 1 < len(self.tokens) and self.tokens[index + 1][0] in ("[", "!"):
                start = index + 1 + (self.tokens[index + 1][0] == "!")
                end = self.closing(start)
                body = self.source[self.tokens[start].start() : self.tokens[end].end()]
                if re.match(r"\[\s*cfg\s*\(\s*(test|all\(\s*test)\b", body):
                    docs, attributes = [], ""
                    index = self.after_item(end + 1)
                    continue
                attributes += body
                self.attribute(start, end)
                index = end
            elif punct in ("(", "[", "{"):
                before = self.tokens[index - 1] if index else None
                name = before["word"] if before is not None and before["word"] else ""
                if name == "" and before is not None and before[0] == "!" and index > 1:
                    name = self.tokens[index - 2][0] + "!"
                inherited = stack[-1][1] if stack else False
                # The fields of a variant follow its name.
                shown = punct in "({" and (shown_next or inherited)
                if docs and inherited:
                    self.flush(docs, attributes, True)
                docs, attributes = [], ""
                stack.append((name, shown))
                shown_next = False
            elif punct in (")", "]", "}"):
                if stack:
                    stack.pop()
                docs, attributes = [], ""
            elif token["raw"] is not None or token["string"] is not None:
                if not any(name in SILENT_CALLS for name, _ in stack) and token[0][0] != "b":
                    raw = token["raw"] is not None
                    self.add(token.start(), token["rawtext"] if raw else rust_unescaped(token["text"]))
                docs, attributes = [], ""
            elif token["word"] in ("struct", "enum", "fn", "mod", "impl", "trait", "type", "const", "static", "use"):
                derives = " ".join(re.findall(r"derive\s*\(([^)]*)\)", attributes))
                shown = token[0] in ("struct", "enum") and bool(SHOWN_DERIVES.search(derives))
                route = token[0] == "fn" and "utoipa::path" in attributes
                if not (stack and stack[-1][1]):
                    self.flush(docs, attributes, shown or route)
                    docs, attributes, shown_next = [], "", shown
            elif punct in (",", ";", ":", "="):
                if docs:
                    self.flush(docs, attributes, bool(stack and stack[-1][1]))
                docs, attributes = [], ""
                if punct == ";":
                    shown_next = False
            index += 1

    def attribute(self, start: int, end: int) -> None:
        """The texts of an attribute: `#[error("…")]`, `#[arg(help = "…")]`, `#[openapi(…)]`."""
        name = self.tokens[start + 1][0].rstrip("!")
        if name not in ("error", "arg", "command", "clap", "openapi", "utoipa", "value", "param", "schema", "response"):
            return
        for index in range(start, end):
            token = self.tokens[index]
            if token["string"] is None and token["raw"] is None:
                continue
            key = self.tokens[index - 2][0] if self.tokens[index - 1][0] == "=" else ""
            if key in ("name", "value_name", "default_value", "env", "value_delimiter", "example", "path", "identifier", "tag", "content_type"):
                continue
            self.add(token.start(), token["rawtext"] if token["raw"] is not None else rust_unescaped(token["text"]))

    def flush(self, docs: list[re.Match[str]], attributes: str, shown: bool) -> None:
        """Comments that are shown become texts, one for each paragraph."""
        if not docs or not shown or re.search(r"\bflatten\b|serde\(skip\)|\bskip\b|hide\s*=\s*true", attributes):
            return
        paragraph: list[str] = []
        first = docs[0].start()
        for doc in docs:
            text = doc[0][3:].strip()
            if text == "":
                self.add(first, " ".join(paragraph))
                paragraph = []
                continue
            if not paragraph:
                first = doc.start()
            paragraph.append(text)
        self.add(first, " ".join(paragraph))


# --- Python ----------------------------------------------------------------------------------------------------------


def python_texts(path: Path) -> list[Text]:
    tree = ast.parse(path.read_text("utf-8"))
    silent: set[int] = set()
    for node in ast.walk(tree):
        # Documentation, which is a statement of its own, and annotations.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(id(node.value))
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            silent |= {id(part) for part in ast.walk(node.annotation)}
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            silent |= {id(part) for part in ast.walk(node.returns)}
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in ast.walk(node)} - {id(node)}
    texts = []
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append((node.lineno, node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}" for part in node.values]
            texts.append((node.lineno, "".join(parts)))
    return texts


# --- The page --------------------------------------------------------------------------------------------------------

TYPESCRIPT_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<regex>(?<=[(,=:\[!&|?;])\s*/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)
  | (?P<template>`)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

#: What stands before a text that is no text: classes, selectors, addresses, styles.
SILENT_BEFORE = re.compile(
    r"(\bclass(Name)?\b\"?\s*[:=]|classList\.\w+\(|querySelector(All)?(<[^>]*>)?\(|closest\(|matches\(|\bfont\s*=|\bfrom\s|\bimport\b"
    r"|Style\s*=|style\s*:|\b(?:d|viewBox|rel|role|sizes|cssText|transform|href|src|accept|sandbox)\b\"?\s*[:=]|getContext\(|setLineDash\()"
    r"\s*(?:[^\"'`;{}]*\?\s*)?$"
)
CLASSES = re.compile(r"^(?=.*[a-z]-)[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)+$")
#: A table that finds one name by another.
OTHER_NAMES = re.compile(r"""^\s*("[a-z ]+"|[a-z]+): "[a-zô'. -]+",$""")


def typescript_texts(path: Path) -> list[Text]:
    source = path.read_text("utf-8")
    texts: list[Text] = []

    def unescaped(text: str) -> str:
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)

    def add(start: int, text: str) -> None:
        line_start = source.rfind("\n", 0, start) + 1
        line_end = source.find("\n", start)
        if CLASSES.search(text) or OTHER_NAMES.search(source[line_start:line_end]):
            return
        if not SILENT_BEFORE.search(source[max(line_start, start - 120) : start]):
            texts.append((source.count("\n", 0, start) + 1, text))

    def code(position: int, nested: bool) -> int:
        """Reads code until its end, or until the brace that closes `${`."""
        depth = 0
        while position < len(source):
            match = TYPESCRIPT_TOKEN.match(source, position)
            assert match is not None
            if match["string"] is not None:
                add(match.start(), unescaped(match[0][1:-1]))
            elif match["template"] is not None:
                position = template(match.end())
                continue
            elif match[0] == "{":
                depth += 1
            elif match[0] == "}":
                if nested and depth == 0:
                    return match.end()
                depth -= 1
            position = match.end()
        return position

    def template(position: int) -> int:
        start = position - 1
        parts = []
        while position < len(source) and source[position] != "`":
            if source.startswith("${", position):
                end = code(position + 2, True)
                value = re.sub(r"\s+", " ", source[position + 2 : end - 1])
                parts.append("${" + (value if len(value) <= 24 and '"' not in value and "`" not in value else "…") + "}")
                position = end
            elif source[position] == "\\":
                escape = re.match(r"\\(u[0-9a-fA-F]{4}|.)", source[position:], re.DOTALL)
                assert escape is not None
                parts.append(unescaped(escape[0]))
                position += len(escape[0])
            else:
                parts.append(source[position])
                position += 1
        add(start, "".join(parts))
        return position + 1

    code(0, False)
    return texts


class Page(HTMLParser):
    """Text nodes, and the attributes that people read or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[Text] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        read = {"aria-label", "aria-description", "title", "placeholder", "alt"}
        if ("name", "description") in attrs:
            read.add("content")
        self.texts += [(self.getpos()[0], value) for name, value in attrs if name in read and value]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            skipped = data[: len(data) - len(data.lstrip())].count("\n")
            self.texts.append((self.getpos()[0] + skipped, data))


def html_texts(path: Path) -> list[Text]:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page.texts


# --- The descriptions of answers, which the server shows -----------------------------------------------------------------


def schema_texts(path: Path) -> list[Text]:
    lines = path.read_text("utf-8").splitlines()
    found = ((number, re.search(r'"(?:description|title)"\s*:\s*("(?:[^"\\]|\\.)*")', line)) for number, line in enumerate(lines, 1))
    return [(number, json.loads(match[1])) for number, match in found if match is not None]


# --- What is for people ----------------------------------------------------------------------------------------------

NOT_FOR_PEOPLE = re.compile(
    r"^\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|ALTER|DROP|WITH|BEGIN|REPLACE|VACUUM|COMMIT) "  # SQL
    r"|^\w+(, \w+_\w+)+$|^\w+(, \w+){5,}$"  # columns
    r"|^([A-Z]{2} ){4,}"  # codes of countries
    r"|^(curl|python3?) |^<\?xml"  # commands, XML
    r"|\bgl_Position\b|\bvoid main\b|^#version"  # shaders
    r"|charset=|max-age=|default-src|^Bearer |^bytes \{"  # headers
    r"|^\w+\(\{:\?\}"  # debugging
    r"|=\"\{|^'DejaVu|sans-serif|Georgia, serif|\"Newsreader|^Newsreader"  # attributes and fonts
    r"|^(rgba?|\(prefers)\b|^\(prefers|:root\{"  # styles
    r"|^\[[^\]]*\]$"  # shapes
)


MARKUP = re.compile(r"</[a-z{]|<!doctype|<(?!gpx\b|https?:)[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE)
#: Elements after which another sentence begins.
BLOCK = re.compile(
    r"</?(?:p|h\d|td|th|tr|table|div|section|title|figure|figcaption|li|ul|pre|html|head|body|meta|main|article|header|footer|dt|dd)"
    r"\b[^<>]*>"
)
DRAWING = re.compile(r"<(?:svg|g|path|rect|text|circle|line|defs|use|clipPath|image|polyline|linearGradient|stop)\b[^>]*=")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text: none, if it is not for people."""
    # Markup is no text, but what it contains is.
    if MARKUP.search(text):
        text = re.sub(r"<style>.*?</style>", " ", text, flags=re.DOTALL)
        if DRAWING.search(text):
            return
        pieces = [re.sub(r"</?[a-zA-Z!?{][^<>]*>", "", part) for part in BLOCK.split(text)]
    else:
        pieces = [text]
    for piece in pieces:
        piece = re.sub(r"\s+", " ", piece).strip()
        if " " not in piece or NOT_FOR_PEOPLE.search(piece):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`‘“{])", piece):
            if re.search(r"[^\W\d_]{2,}", re.sub(r"\$?\{[^{}]*\}", " ", sentence)):
                yield sentence.lstrip(".;, ")


def files(root: Path, folder: str, *endings: str) -> list[Path]:
    found = (path for ending in endings for path in (root / folder).rglob(f"*{ending}"))
    return sorted(path for path in found if "node_modules" not in path.parts and "dist" not in path.parts)


def all_texts(root: Path) -> Iterator[tuple[Path, Text]]:
    rust = [path for crate in sorted((root / "crates").iterdir()) for path in files(crate, "src", ".rs")]
    rust += files(root, "bindings/python/src", ".rs")
    read = {path: Rust(path) for path in rust}
    tests = [test for file in read.values() for test in file.tests]
    for path, file in read.items():
        if not any(path == test or test in path.parents for test in tests):
            yield from ((path, text) for text in file.texts)
    for path in files(root, "bindings/python/python", ".py"):
        yield from ((path, text) for text in python_texts(path))
    for path in files(root, "web/src", ".ts"):
        yield from ((path, text) for text in typescript_texts(path))
    for path in sorted((root / "web").glob("*.html")):
        yield from ((path, text) for text in html_texts(path))
    schema = root / "docs" / "answer.schema.json"
    if schema.is_file():
        yield from ((schema, text) for text in schema_texts(schema))


def main() -> None:
    parser = argparse.ArgumentParser(description="List every sentence that users can read, from the sources.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2], help="the repository")
    parser.add_argument("--count", action="store_true", help="print only the number, as JSON")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    listed = sorted(
        {
            (path.relative_to(root).as_posix(), line, sentence)
            for path, (line, text) in all_texts(root)
            for sentence in sentences(text)
        }
    )
    if arguments.count:
        print(json.dumps({"sentences": len(listed)}))
        return
    sys.stdout.write("".join(f"{path}:{line}\t{sentence}\n" for path, line, sentence in listed))


if __name__ == "__main__":
    main()
