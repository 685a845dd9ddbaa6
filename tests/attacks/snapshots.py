"""What lies in a folder, to see afterwards that nobody has touched it."""

import os
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

Tree: TypeAlias = dict[str, tuple[str, ...]]


def tree_of(folder: Path, leave_out: tuple[str, ...] = ()) -> Tree:
    """Every name below a folder with its kind, size, time and content; links are not followed."""
    tree: Tree = {}
    for above, folders, files in os.walk(folder):
        relative = os.path.relpath(above, folder)
        if relative == ".":
            folders[:] = [name for name in folders if name not in leave_out]
            files = [name for name in files if name not in leave_out]
        for name in (*folders, *files):
            path = Path(above, name)
            tree[os.path.normpath(Path(relative, name))] = _entry(path)
    return tree


def _entry(path: Path) -> tuple[str, ...]:
    state = path.lstat()
    if path.is_symlink():
        return "link", str(path.readlink())
    if path.is_dir():
        return ("folder",)
    content = sha256(path.read_bytes()).hexdigest()
    return "file", str(state.st_size), str(state.st_mtime_ns), content


def differences(before: Tree, after: Tree) -> list[str]:
    """What was done to a folder, a line for each name."""
    gone = [f"{name} is gone" for name in before if name not in after]
    new = [f"{name} is new" for name in after if name not in before]
    changed = [
        f"{name} was changed" for name in before if name in after and before[name] != after[name]
    ]
    return gone + new + changed
