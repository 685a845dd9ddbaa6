import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parabit.corpus.datasets.docstrings import DocstringCorpus

Write = Callable[[str, str | bytes], Path]

MODULE = '''
"""The module's own text is not a definition's."""
def public():
    """What public does."""
    def inner():
        """Nobody's interface."""
def _private():
    """Hidden."""
def silent():
    pass
async def later():
    """Awaited."""
class Thing:
    """A thing."""
    def method(self):
        """Does it."""
    def _hidden(self):
        """Hidden."""
    class Part:
        """A part."""
try:
    def guarded():
        """Under try."""
except ImportError:
    def guarded():
        """The other one."""
    def fallback():
        """Under except."""
if True:
    pass
else:
    if True:
        class Deep:
            """Under if under else."""
raise SystemExit("a module that must never be run")
'''


@pytest.fixture
def site(write: Write, tmp_path: Path) -> Path:
    for name, content in {
        "single.py": MODULE,
        "package/__init__.py": "from ._impl import handed_on\nfrom package._other import *\n"
        "try:\n    from ._fast import quick\nexcept ImportError:\n    pass",
        "package/_fast.py": '__all__: list[str] = []\ndef quick():\n    """Fast."""',
        "package/_impl/deep.py": 'def handed_on():\n    """In private."""\ndef kept():\n    """Kept in private."""',
        "package/_other.py": '__all__ = ["starred"]\ndef starred():\n    """By the star."""\n'
        'def unnamed():\n    """Not in __all__."""',
        "package/sub/module.py": 'def far():\n    r"""Far \\down."""',
        "package/tests/test_it.py": 'def test():\n    """Left out."""',
        "package/broken.py": "def broken(:",
        "package/python2.py": "print 'no'",
        "_hidden/module.py": 'def f():\n    """Left out."""',
        "package-1.0.dist-info/x.py": 'def f():\n    """Left out."""',
    }.items():
        write(f"site/{name}", content)
    (tmp_path / "site" / "package" / "folder.py").mkdir()
    (tmp_path / "site" / "package" / "dangling.py").symlink_to(tmp_path / "nowhere")
    return write("site/binary.py", b"\0\1\2").parent


def test_public_definitions_are_found_and_nothing_runs(site: Path) -> None:
    found = {document.id: document.text for document in DocstringCorpus([site])}
    assert found == {
        "single.public": "What public does.", "single.later": "Awaited.", "single.Thing": "A thing.",
        "single.Thing.method": "Does it.", "single.Thing.Part": "A part.", "single.guarded": "Under try.",
        "single.fallback": "Under except.", "single.Deep": "Under if under else.",
        "package.handed_on": "In private.", "package.starred": "By the star.", "package.quick": "Fast.",
        "package.sub.module.far": "Far \\down.",
    }  # fmt: skip
    assert "single" not in sys.modules
    corpus = DocstringCorpus([site])
    labels = {document.id: document.labels for document in corpus}
    assert (labels["single.Thing.method"], labels["package.handed_on"]) == (
        ("single",),
        ("package",),
    )
    assert labels["package.sub.module.far"] == ("package", "package.sub")
    halves = [
        document.id for split in ("train", "test") for document in DocstringCorpus([site], split)
    ]
    assert sorted(halves) == sorted(document.id for document in corpus)
