"""`parabit serve` in a process of its own, which can be killed and started again at the same address."""

import subprocess
import sys
import time
from pathlib import Path

import httpx

from ports import free_ports


class ServeProcess:
    """The real command, on a port that was free."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = next(free_ports())
        self.address = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "parabit", "serve", str(folder), "--port", str(self.port), *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                if httpx.get(f"{self.address}/healthz").is_success:
                    return
            except httpx.TransportError:
                assert self._process.poll() is None, "parabit serve has ended"
                assert time.monotonic() < until, "parabit serve does not answer"
                time.sleep(0.05)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
