"""The verbs put together; a verb's module is imported when the verb is used."""

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from parabit import __version__
from parabit.cli.output import visible

VERBS = {  # as the help lists them, each with the module that has its function
    "Search": {
        "index": "index",
        "search": "search",
        "serve": "serve",
        "mcp": "serve",
        "dedupe": "dedupe",
    },
    "Maintain": dict.fromkeys(("info", "sync", "add", "delete", "compact", "retrain"), "index"),
    "Learn": dict.fromkeys(("train", "encode", "evaluate", "reproduce"), "learn"),
    "Explore": dict.fromkeys(("demo", "datasets", "vocabulary"), "explore"),
}
LIBRARIES = (
    "numpy",
    "polars",
    "faiss-cpu",
    "tantivy",
    "scipy",
    "scikit-learn",
    "safetensors",
    "torch",
    "fastapi",
)
COLLAPSED = "more options"  # begins the title of a group that --help only names
_WORDINGS = (
    ("^Value error, ", ""),
    ("^Input should be a valid integer.*", "it must be a whole number"),
    ("^Input should be a valid number.*", "it must be a number"),
    ("^Input should be greater than or equal to", "it must be at least"),
    ("^Input should be less than or equal to", "it must be at most"),
)
HELP = {"help_option_names": ["-h", "--help"]}


class _Help:
    """Help on one screen, without rich, which takes longer to import than everything else that help needs."""

    callback: Any
    get_params: Any

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, " ".join(self.collect_usage_pieces(ctx)))
        about, _, examples = (inspect.getdoc(self.callback) or "").partition("Examples:")
        formatter.write_paragraph()
        formatter.write_text(about.strip())
        formatter.write_paragraph()
        formatter.write("Examples:\n" if examples.count("parabit ") > 1 else "Example:\n")
        for line in filter(None, map(str.strip, examples.splitlines())):
            formatter.write(f"  {line}\n")
        self.format_options(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        params = [
            param
            for param in self.get_params(ctx)
            if param.required and param.param_type_name == "option"
        ]
        needed = [f"{param.opts[-1]} {param.metavar}" for param in params]
        return [
            *(piece.replace("{", "").replace("}", "") for piece in pieces[1:]),
            *needed,
            *pieces[:1],
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            is_argument = param.param_type_name == "argument"
            panel = (
                "Arguments" if is_argument else getattr(param, "rich_help_panel", None) or "Options"
            )
            if param.name not in ("install_completion", "show_completion"):  # which few need
                groups.setdefault(panel, []).append(param)
        named = (
            []
            if "--help-all" in ctx.meta
            else [title for title in groups if title.startswith(COLLAPSED)]
        )
        for title, params in groups.items():
            if params and title not in named:
                with formatter.section(title.removeprefix(f"{COLLAPSED}: ").capitalize()):
                    formatter.write_dl([*map(_record, params)], col_max=34)
        if named:
            formatter.write("\nMore options, explained by --help-all:\n")
        for title in named:
            names = f"  {title.removeprefix(f'{COLLAPSED}: ')}: {' '.join(param.opts[-1] for param in groups[title])}"
            formatter.write(
                textwrap.fill(names, 78, subsequent_indent="    ", break_on_hyphens=False) + "\n"
            )


def _record(param: Any) -> tuple[str, str]:
    """A parameter and what it is, as help lists them."""
    if param.param_type_name == "argument":
        return param.metavar or param.name, param.help or ""
    names = ", ".join(sorted(param.opts, key=len)) + "".join(
        f" / {name}" for name in param.secondary_opts
    )
    explained = isinstance(param.show_default, str)
    shown = explained or (
        param.show_default and not param.is_flag and param.default not in (None, ())
    )
    default = param.show_default if explained else param.default
    name = names if param.is_flag else f"{names} {param.metavar}"
    return name, f"{param.help} [default: {default}]" if shown else param.help


class Verb(_Help, TyperCommand):
    """A verb; what is wrong with an option's value is said in its own words, not in pydantic's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_words = {"query", "ids"} & {param.name for param in self.params}
        minus = takes_words and any(
            re.match(r"-[^-]\D", arg) for arg in args
        )  # -kite is read as -k with a value
        try:
            return super().parse_args(ctx, args)
        except Exception as problem:
            wrong: Any = problem
            if hasattr(
                wrong, "message"
            ):  # of wrong usage; asked for help, typer ends the process by an exception too
                for theirs, ours in _WORDINGS:
                    wrong.message = re.sub(theirs, ours, wrong.message)
                wrong.message += (
                    "; a query or an id that begins with - needs -- before it" if minus else ""
                )
            raise


@contextmanager
def _errors_for_terminals() -> Iterator[None]:
    """Ignore a closed pipe, as in `parabit … | head`; explain wrong usage in visible characters."""
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough
        # Python would write the rest when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except Exception as problem:
        usage: Any = problem  # typer explains wrong usage with the words that were given
        if hasattr(usage, "message"):
            usage.message = visible(usage.message)
        raise


class Verbs(_Help, TyperGroup):
    """All verbs; the module of one is imported when it is used, or listed with its first line."""

    make_context = _errors_for_terminals()(TyperGroup.make_context)
    invoke = _errors_for_terminals()(TyperGroup.invoke)

    def __init__(self, **given: Any) -> None:
        names = [name for verbs in VERBS.values() for name in verbs]
        super().__init__(**{**given, "commands": dict.fromkeys(names)})

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        return load_verb(cmd_name) if cmd_name in self.commands else None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for panel, verbs in VERBS.items():
            with formatter.section(panel):
                formatter.write_dl(
                    [(name, str(load_verb(name).help).split("\n")[0]) for name in verbs], col_max=20
                )
        super().format_options(ctx, formatter)


def load_verb(name: str) -> TyperCommand:
    module = next(verbs[name] for verbs in VERBS.values() if name in verbs)
    function = getattr(import_module(f"parabit.cli.{module}"), name)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
    single.command(name, cls=Verb)(function)
    return cast(TyperCommand, typer.main.get_command(single))


def _show_versions(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        typer.echo(f"parabit {__version__}\nPython {sys.version.split()[0]}")
        for name in LIBRARIES:
            try:
                typer.echo(f"{name} {version(name)}")
            except PackageNotFoundError:
                typer.echo(f"{name} not installed")
        raise typer.Exit


def _parabit(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_versions, help="Show versions."),
    ] = False,
) -> None:
    """Search your documents by meaning and by words, and remove copies.

    Examples:
        parabit index papers/ -o papers.index
        parabit search papers.index "codes of documents"
    """


app = typer.Typer(
    name="parabit", cls=Verbs, context_settings=HELP, no_args_is_help=True, rich_markup_mode=None,
    pretty_exceptions_enable=False,
)  # fmt: skip
app.callback()(_parabit)
