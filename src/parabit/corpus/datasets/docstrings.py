"""The documentation strings of the Python packages installed here and of the standard library.

Read with `ast` and never imported: reading a package must not run it. A corpus that every machine has.
"""

import ast
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, takewhile
from pathlib import Path

from parabit.corpus.datasets import Dataset, in_split
from parabit.corpus.document import Document
from parabit.corpus.sources import Source, SourceCorpus

# What holds no documentation of the package itself.
_LEFT_OUT = {"tests", "test", "idle_test", "site-packages", "vendor", "vendored", "externals"}

# A function, class or method with a documentation string: module, name inside it (`Class.method`) and text.
Definition = tuple[str, str, str]


class DocstringCorpus(SourceCorpus):
    """The public functions, classes and methods of the packages below some folders, in the order of their names.

    A definition in a private module counts if the package exports it (`from ._base import Ridge`, `__all__`), under
    its public name: most of numpy, scipy and scikit-learn is written that way.
    """

    def __init__(self, roots: Sequence[Path], split: str | None = None) -> None:
        # The first root wins, as in Python's own import.
        modules = {name: path for root in reversed(roots) for name, path in _modules(root)}
        names = sorted(modules, key=lambda name: name.split("."))
        super().__init__([Source(modules[name], name=name) for name in names])
        self._split = split

    def __iter__(self) -> Iterator[Document]:
        self._current = 0
        for _, sources in groupby(self.sources, key=lambda source: source.name.split(".")[0]):
            package = [(source.name, source.location) for source in sources]
            seen: set[str] = set()
            for module, name, text in public_definitions(package):
                public = _public_part(module)
                id = f"{public}.{name}"
                # One definition may stand twice (for two platforms, as overloads): the first with a text counts.
                if id not in seen and in_split(id, self._split, held_out=0.5):
                    # The package and, if there is one, the sub-package or module in it: scipy and scipy.sparse.
                    labels = tuple(accumulate(public.split(".")[:2], "{}.{}".format))
                    yield Document(id, text, labels, {"module": module})
                seen.add(id)
            self._current += len(package)


def public_definitions(package: Sequence[tuple[str, str]]) -> list[Definition]:
    """The definitions that users of a package see, of which the name and path of each module are given."""
    definitions: list[Definition] = []
    exported: set[str] = set()
    for module, path in package:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # other people's invalid escapes are not our user's business
                tree = ast.parse(Path(path).read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
            continue  # templates, files for other versions of Python, unreadable files
        definitions.extend(_documented(tree, module))
        exported.update(_exported(tree, _public_part(module) == module))
    return [
        (module, name, text)
        for module, name, text in definitions
        if _public_part(module) == module or name.split(".")[0] in exported
    ]


def _documented(
    node: ast.Module | ast.ClassDef, module: str, inside: str = ""
) -> Iterator[Definition]:
    """The definitions with a public name and a documentation string, outermost first."""
    for statement in _statements(node):
        if (
            isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and statement.name[0] != "_"
        ):
            name = inside + statement.name
            if text := ast.get_docstring(statement):
                yield module, name, text
            if isinstance(statement, ast.ClassDef):
                yield from _documented(statement, module, f"{name}.")


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements in a node, those under `if` and `try` too; what is inside functions is nobody's interface."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If | ast.Try | ast.ExceptHandler):
            yield from _statements(child)
        elif isinstance(child, ast.stmt):
            yield child


def _exported(tree: ast.Module, public: bool) -> Iterator[str]:
    """The names that a module makes public for others: those in its `__all__`, and what a public module imports."""
    for statement in _statements(tree):
        if isinstance(statement, ast.ImportFrom) and public:
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                constants = (node for node in ast.walk(statement) if isinstance(node, ast.Constant))
                yield from (
                    constant.value for constant in constants if isinstance(constant.value, str)
                )


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """The modules below a folder and their names, except private packages at the top level and what is left out."""
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        kept = all(part.isidentifier() and part.lstrip("_") not in _LEFT_OUT for part in parts)
        if kept and not parts[0].startswith("_") and path.is_file():
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _public_part(module: str) -> str:
    """A module's name up to its first private part: where users find what it defines, by custom."""
    return ".".join(takewhile(lambda part: not part.startswith("_"), module.split(".")))


_ROOTS = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
DATASETS = {
    "docstrings": Dataset(
        about="the documentation of the Python packages installed here; the labels are package and sub-package",
        licence="each package's own",
        files="",
        corpus=lambda _, split: DocstringCorpus(_ROOTS, split),
    )
}
