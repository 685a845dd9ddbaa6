"""Downloads of data sets, by pooch."""

from pathlib import Path

import pooch
import requests

from parabit.corpus.datasets.dataset import Dataset
from parabit.errors import DownloadError
from parabit.progress import Progress, Report, silent


def fetch(dataset: Dataset, data: Path, report: Report = silent) -> Path:
    """Download a data set's file into the data folder and check it; it is there whole or not at all."""
    target = data / dataset.files
    pooch.get_logger().setLevel("WARNING")
    failures = []
    for url in dataset.urls:
        downloader = pooch.HTTPDownloader(progressbar=_Bar(target.name, report), chunk_size=1 << 18, timeout=30)
        source = pooch.create(
            target.parent,
            base_url="",
            registry={target.name: dataset.sha256},
            urls={target.name: url},
            retry_if_failed=2,
        )
        try:
            return Path(source.fetch(target.name, downloader=downloader))
        except requests.RequestException as problem:
            failures.append(f"{url} could not be downloaded: {problem}")
        except ValueError:
            failures.append(f"{url} has another SHA-256 than {dataset.sha256}: the file is damaged or another one")
        except OSError as problem:
            raise DownloadError(
                f"{target.name} cannot be written to {target.parent}: {problem.strerror or problem}",
                hint="set PARABIT_DATA to a folder that can be written and has room",
            ) from problem
    raise DownloadError("; ".join(failures), hint=f"try again, or put the file at {target} yourself")


class _Bar:
    """A progress bar as pooch wants one, which only reports."""

    total = 0

    def __init__(self, name: str, report: Report) -> None:
        self._name, self._report, self._done = name, report, 0

    def update(self, count: int) -> None:
        self._done += count
        share = min(1.0, self._done / self.total) if self.total else None
        self._report(Progress(f"downloading {self._name}", self._done, "bytes", share))

    def reset(self) -> None:
        # pooch resets a bar when the file is complete, and then adds its size once more.
        self._done = 0

    def close(self) -> None:
        pass
