"""`inquest datastorage backup` and `restore`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inquest.datastorage.store.backup import CopyFailed, back_up, restore_backup
from inquest.errors import Misconfigured
from inquest.settings.settings import Settings


def backup(file: Path, /, *, settings: Path | None = None) -> None:
    """Copy the database of the settings into a new file; the service may run meanwhile.

    Parameters
    ----------
    file
        File to make; nothing is written over.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    _done(back_up, file, settings)
    print(f"{file.stat().st_size} bytes in {file}")


def restore(file: Path, /, *, settings: Path | None = None) -> None:
    """Put such a copy back in place of the database of the settings; stop the service first.

    Parameters
    ----------
    file
        What `inquest datastorage backup` made.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    _done(restore_backup, file, settings)
    print(f"{file} is in place: start the service")


def _done(work: Callable[[str, Path], None], file: Path, settings: Path | None) -> None:
    try:
        work(Settings.load(settings).datastorage.database, file)
    except (CopyFailed, OSError) as error:
        raise Misconfigured(str(error)) from error
