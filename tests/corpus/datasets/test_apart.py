"""Packages that are read by helpers."""

import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from parabit.corpus.datasets.apart import read_packages
from parabit.corpus.datasets.docstrings import DocstringCorpus, public_definitions
from parabit.corpus.sources import Source

Write = Callable[[str, str | bytes], Path]
Packages = list[list[Source]]


@pytest.fixture
def packages(write: Write, tmp_path: Path) -> Packages:
    for number in range(9):
        write(
            f"site/package{number}/__init__.py",
            f'def first{number}():\n    """Of the package \\u017c \\ud800."""\n' * (number + 1),
        )
        write(f"site/package{number}/deep.py", f'class Second{number}:\n    """Deeper."""')
    sources = DocstringCorpus([tmp_path / "site"]).sources
    return [list(group) for _, group in groupby(sources, key=lambda source: source.name.split(".")[0])]


def read_here(packages: Packages) -> list[list[Any]]:
    return [public_definitions(package) for package in packages]


def not_here(package: Any) -> list[Any]:
    raise AssertionError("a helper was to read it")


def test_helpers_find_what_is_found_here_in_the_same_order(packages: Packages) -> None:
    assert len(packages) == 9
    assert list(read_packages(packages, not_here, alone=0, worth=0)) == read_here(packages)
    assert list(read_packages(packages, public_definitions)) == read_here(packages)  # too few for helpers


@pytest.mark.parametrize("executable", ["/no/such/python", "/bin/false", None])
def test_what_helpers_do_not_do_is_done_here(
    executable: str | None, packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert list(read_packages(packages, public_definitions, alone=0, worth=0)) == read_here(packages)


def test_a_helper_that_is_killed_is_replaced(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = read_packages(packages, public_definitions, alone=0, worth=0)
    processes = noted(monkeypatch)
    found = [next(reading)]
    for process in processes:
        process.kill()
        process.wait()
    assert [*found, *reading] == read_here(packages)


def test_who_has_seen_enough_leaves_no_helper_behind(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = noted(monkeypatch)
    reading = read_packages(packages, public_definitions, alone=0, worth=0)
    next(reading)
    assert processes
    del reading
    assert all(process.poll() is not None for process in processes)


def test_a_file_in_the_current_folder_is_not_taken_for_a_library(
    packages: Packages, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write("here/json.py", "raise SystemExit").parent)
    assert list(read_packages(packages, not_here, alone=0, worth=0)) == read_here(packages)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started from now on."""
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return started
