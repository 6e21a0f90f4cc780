"""Files to documents: YAML, JSON, a zip of both, or stdin (`-`)."""

from __future__ import annotations

import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from muster.simulator.command_line import NOTHING_SAID, CommandLine, read_command_line
from muster.simulator.input_error import InputError, Place
from muster.yaml_documents import YamlError, yaml_documents

STDIN: Final = "-"
CONFIGURATION: Final = "scheduler.yaml"
"""In a snapshot: the scheduler's configuration."""
FLAGS: Final = "flags.txt"
"""In a snapshot: the flags that the scheduler was started with, one a line."""
_ZIP: Final = b"PK\x03\x04"
_EMPTY_ZIP: Final = b"PK\x05\x06"
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_LARGEST_MEMBER: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Document:
    """One document as plain data, and where it stands."""

    place: Place
    content: Any


@dataclass(slots=True)
class Sources:
    """What was read: the documents, and what a snapshot brought along: the configuration (name and text), the flags."""

    documents: list[Document]
    configuration: tuple[str, bytes] | None = None
    command_line: CommandLine = NOTHING_SAID


def read_sources(names: list[str]) -> Sources:
    """Read all files. Raises InputError naming the file that can't be read, or the document that is no YAML."""
    found = Sources([])
    for name in names:
        text = _bytes(name)
        if text.startswith((_ZIP, _EMPTY_ZIP)):
            _read_zip(name, text, found)
            continue
        documents = list(_documents(name, text))
        if not documents:
            raise InputError(Place(name), "", "holds no document")
        found.documents += documents
    return found


def _bytes(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise InputError(Place(name), "", getattr(error, "strerror", None) or str(error)) from error


def _read_zip(name: str, content: bytes, found: Sources) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in sorted(archive.infolist(), key=lambda each: each.filename):
                if member.is_dir() or not (member.filename == FLAGS or member.filename.endswith(_MANIFESTS)):
                    continue
                if member.file_size > _LARGEST_MEMBER:
                    raise InputError(Place(f"{name}:{member.filename}"), "", "is too large")
                text = archive.read(member)
                if member.filename == CONFIGURATION:
                    found.configuration = (f"{name}:{member.filename}", text)
                elif member.filename == FLAGS:
                    found.command_line = _flags(f"{name}:{member.filename}", text)
                else:
                    found.documents += _observed(_documents(f"{name}:{member.filename}", text))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(Place(name), "", f"not a readable zip: {error}") from error


def _flags(name: str, text: bytes) -> CommandLine:
    try:
        return read_command_line(text.decode().splitlines())
    except ValueError as error:
        raise InputError(Place(name), "", str(error)) from error


def _observed(documents: Iterator[Document]) -> Iterator[Document]:
    for document in documents:
        yield Document(replace(document.place, observed=True), document.content)


def _documents(name: str, text: bytes) -> Iterator[Document]:
    if text.lstrip()[:1] == b"{":
        try:
            yield Document(Place(name, 1), msgspec.json.decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if name.endswith(".json"):
                raise InputError(Place(name, 1), "", f"not JSON: {error}") from error
            # YAML may begin with a brace too.
        else:
            return
    try:
        for number, content in yaml_documents(text):
            yield Document(Place(name, number), content)
    except YamlError as error:
        raise InputError(Place(name, error.document), "", str(error)) from error
