"""`parabit serve` in a process of its own."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path


class ServeProcess:
    """The real command at a port that is free; once it has said where, it can be asked."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        command = [sys.executable, "-m", "parabit", "serve", *map(str, arguments), "--port", "0"]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        address = re.search(r"http://\S+?:\d+", line)
        assert address, f"{shlex.join(command)}: {line}{self._process.communicate()[1]}"
        self.address = address[0]

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it by a signal; its exit code and its errors."""
        self._process.send_signal(number)
        _, errors = self._process.communicate()
        return self._process.returncode, errors
