"""Directories and files of this machine, touched only inside of given roots.

A symbolic link may be put into a warehouse by whoever writes data there. So a path is resolved first, the result must
lie in the resolved root, and it is then opened name by name without following links: what is changed is what was
judged, even if a directory is replaced by a link in between. Deleting a link deletes the link.

`roots` are paths; an operation outside of them raises `LeadsOutside`, which is an OSError like all others here.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain

from hms_cache.store.crash_points import CrashPoint, crash_point

#: Each is cut short by another deletion inside or around it; partitions of a table are dropped at once by this many.
_DELETION_ATTEMPTS = 1000

#: Directories inside of each other that a listing enters: each holds a file descriptor meanwhile. Partitions have a
#: level per key; deeper trees are none of a table's.
_LISTING_DEPTH = 64

#: Of a file at a time, as it is copied: large enough that calls cost little beside the bytes.
_COPY_BYTES = 1 << 20

_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: What Linux takes as one path, its end included.
_PATH_MAX_BYTES = 4096

DELETED_PREFIX = ".deleted-"
"""Names of directories that are being deleted; one that is left was cut short by the end of the process."""


class LeadsOutside(OSError):
    """A symbolic link leads out of the directories that are allowed."""


class ListingTooLong(Exception):
    """A directory holds more than may be listed, or listing it takes too long."""


def is_hidden(name: str) -> bool:
    """Whether Hive takes the file or directory for none of the data."""
    return name.startswith(("_", "."))


def is_within(path: str, roots: Sequence[str]) -> bool:
    """Whether the path, symbolic links resolved, is or lies in one of the roots, links resolved."""
    return _is_inside(os.path.realpath(path), path, roots)


@contextmanager
def directory_within(path: str, roots: Sequence[str]) -> Iterator[int]:
    """The directory, opened, for names in it. Raises LeadsOutside, and FileNotFoundError when it is not there."""
    with _opened(_real(path, roots), _SEARCH) as opened:
        yield opened


def is_link(parent: int, name: str) -> bool:
    """Whether the name in an opened directory is a symbolic link's."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def is_directory(path: str, roots: Sequence[str]) -> bool:
    """Whether there is a directory, or a link to one inside of the roots."""
    return os.path.isdir(_real(path, roots))


def is_vacant(path: str, roots: Sequence[str]) -> bool:
    """Whether nothing is there, or an empty directory; not where that may not be looked at."""
    try:
        with _opened(_real(path, roots), _LIST) as directory, os.scandir(directory) as listed:
            return next(listed, None) is None
    except FileNotFoundError:
        return True
    except (NotADirectoryError, PermissionError):
        return False


def exists(path: str, roots: Sequence[str]) -> bool:
    """Whether there is anything of that name, a link that leads nowhere included."""
    return _status(path, roots) is not None


def make_directory(path: str, roots: Sequence[str]) -> bool:
    """Makes the directory and its parents; False when it was there already, or another call made it meanwhile."""
    real = _real(path, roots)
    if len(os.fsencode(real)) >= _PATH_MAX_BYTES:
        # Made name by name it could be; whoever names it whole, backups and other programs, could not reach it.
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    if os.path.isdir(real):
        return False
    made = False
    directory = os.open("/", _SEARCH)
    try:
        for name in filter(None, real.split("/")):
            made = False
            try:
                below = os.open(name, _SEARCH, dir_fd=directory)
            except FileNotFoundError:
                with suppress(FileExistsError):  # another call made it in between: it is that call's to undo
                    os.mkdir(name, dir_fd=directory)
                    made = True
                below = os.open(name, _SEARCH, dir_fd=directory)
            os.close(directory)
            directory = below
    finally:
        os.close(directory)
    return made


def make_directories(paths: Sequence[tuple[str, Sequence[str]]]) -> list[bool | OSError]:
    """`make_directory` of each path with its roots; an error of one leaves the others."""
    made: list[bool | OSError] = []
    for path, roots in paths:
        try:
            made.append(make_directory(path, roots))
        except OSError as error:
            made.append(error)
    return made


def remove_empty_directory(path: str, roots: Sequence[str]) -> None:
    """Removes a directory without anything in it; one that has something, or is none, stays as it is."""
    with _fine(errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR), _parent(path, roots) as (parent, name):
        os.rmdir(name, dir_fd=parent)


def rename(
    source: str,
    destination: str,
    roots: Sequence[str],
    destination_roots: Sequence[str] | None = None,
    *,
    may_copy: bool = True,
) -> bool:
    """Renames a directory, or with `may_copy` moves it between mounts, which takes long; False where that is needed.

    Raises FileExistsError for a destination that is there.

    The destination is made first: `mkdir` fails for all but one, where a plain move into a directory that another call
    made after the last look would put this one *inside* of it.
    """
    goal_roots = roots if destination_roots is None else destination_roots
    make_directory(posixpath.dirname(destination), goal_roots)
    with _parent(source, roots) as (old, old_name), _parent(destination, goal_roots) as (new, new_name):
        is_directory_moved = stat.S_ISDIR(os.stat(old_name, dir_fd=old, follow_symlinks=False).st_mode)
        if is_directory_moved:
            os.mkdir(new_name, dir_fd=new)
            crash_point(CrashPoint.DESTINATION_MADE)
        elif exists(destination, goal_roots):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), destination)
        try:
            os.rename(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)
        except OSError as error:
            if is_directory_moved:
                os.rmdir(new_name, dir_fd=new)
            if error.errno != errno.EXDEV:
                raise
            if not may_copy:
                return False
            shutil.move(_real(source, roots), _real(destination, goal_roots))
    return True


def copy(source: str, destination: str, roots: Sequence[str], destination_roots: Sequence[str]) -> None:
    """Copies a directory with all in it. Raises FileExistsError for a destination that is there.

    Links are copied as links: what they lead to is judged when it is read, and not put where anybody may read it.
    """
    make_directory(posixpath.dirname(destination), destination_roots)
    with ExitStack() as stack:
        old = stack.enter_context(_opened(_real(source, roots), _LIST))
        parent, name = stack.enter_context(_parent(destination, destination_roots))
        os.mkdir(name, dir_fd=parent)
        new = stack.enter_context(_below(parent, name))
        _copy_entries(old, new, 1)


def _copy_entries(source: int, destination: int, depth: int) -> None:
    if depth > _LISTING_DEPTH:
        raise OSError(errno.ELOOP, f"Directories are nested more than {_LISTING_DEPTH} deep")
    for name in os.listdir(source):
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(name, dir_fd=destination)
            with _below(source, name) as old, _below(destination, name) as new:
                _copy_entries(old, new, depth + 1)
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=destination)
        elif stat.S_ISREG(mode):
            reading, writing = os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_EXCL
            flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with (
                open(os.open(name, reading | flags, dir_fd=source), "rb") as old_file,
                open(os.open(name, writing | flags, 0o666, dir_fd=destination), "wb") as new_file,
            ):
                shutil.copyfileobj(old_file, new_file, _COPY_BYTES)
        else:
            raise OSError(errno.EINVAL, "Neither a file nor a directory", name)


@contextmanager
def _below(directory: int, name: str) -> Iterator[int]:
    """A directory in an opened one, opened."""
    found = os.open(name, _LIST, dir_fd=directory)
    try:
        yield found
    finally:
        os.close(found)


def delete(path: str, roots: Sequence[str]) -> None:
    """Deletes a file or a directory with all in it, but nothing that is made at its path from now on.

    A table of the same name may be created as soon as the drop is committed: were the directory emptied where it is,
    the new table's partitions would go with it. So it is taken out of the way first, by one atomic step.
    """
    with ExitStack() as stack:
        try:
            parent, name = stack.enter_context(_parent(path, roots))
        except (FileNotFoundError, NotADirectoryError):
            return
        delete_in(parent, name)


def delete_in(parent: int, name: str) -> None:
    """As `delete`, of a name in an opened directory: what a link of that name leads to stays."""
    aside = DELETED_PREFIX + uuid.uuid4().hex
    try:
        os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError:
        aside = name  # a mount point, or a parent that may not be written
    crash_point(CrashPoint.SET_ASIDE)
    for attempt in range(_DELETION_ATTEMPTS):
        try:
            mode = os.stat(aside, dir_fd=parent, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return  # it went with a directory around it
        try:
            if stat.S_ISDIR(mode):
                _delete_tree(aside, parent)
            else:
                os.unlink(aside, dir_fd=parent)
        except OSError as error:
            # Another call deletes a directory inside or around this one: what it left is still to go.
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _DELETION_ATTEMPTS - 1:
                raise


def _delete_tree(name: str, parent: int) -> None:
    """Deletes a directory with all in it, however deep: what lies in its directories is moved up to it first.

    So it takes two file descriptors and the memory of one name, where a walk takes a descriptor for each level.
    """
    top = os.open(name, _LIST, dir_fd=parent)
    try:
        is_empty = False
        while not is_empty:
            is_empty = True
            with os.scandir(top) as listed:
                for entry in listed:
                    is_empty = False
                    if entry.is_dir(follow_symlinks=False):
                        _move_up(entry.name, top)
                    else:
                        os.unlink(entry.name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _move_up(name: str, top: int) -> None:
    """Deletes a directory in another: its files go, its directories are in the other one then."""
    directory = os.open(name, _LIST, dir_fd=top)
    try:
        with os.scandir(directory) as listed:
            for entry in listed:
                if entry.is_dir(follow_symlinks=False):
                    os.rename(entry.name, DELETED_PREFIX + uuid.uuid4().hex, src_dir_fd=directory, dst_dir_fd=top)
                else:
                    os.unlink(entry.name, dir_fd=directory)
    finally:
        os.close(directory)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=top)


def names(path: str, roots: Sequence[str]) -> list[str]:
    """What a directory holds; nothing when it is absent."""
    try:
        with _opened(_real(path, roots), _LIST) as directory:
            return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def visible_files(
    path: str, roots: Sequence[str], *, max_entries: int, deadline_s: float
) -> Generator[tuple[str, int], None, None]:
    """Path below the directory, and size, of each visible file; links to directories are not followed.

    To be read to its end, or closed. Raises ListingTooLong above so many entries, or after `deadline_s` of
    `time.monotonic`.
    """
    entries = 0
    real = _real(path, roots)
    if os.path.isfile(real):
        yield "", os.stat(real).st_size
        return
    with ExitStack() as stack:
        levels: list[tuple[ExitStack, int, Iterator[os.DirEntry[str]], str]] = []

        def enter(directory: int, level: ExitStack, above: str) -> None:
            stack.push(level)
            levels.append((level, directory, level.enter_context(os.scandir(directory)), above))

        try:
            first = ExitStack()
            enter(first.enter_context(_opened(real, _LIST)), first, "")
        except (FileNotFoundError, NotADirectoryError):
            return
        while levels:
            level, directory, listed, above = levels[-1]
            entry = next(listed, None)
            if entry is None:
                levels.pop()
                level.close()
                continue
            entries += 1
            if entries > max_entries or (entries % 256 == 0 and time.monotonic() > deadline_s):
                raise ListingTooLong(f"{entries} entries looked at")
            if is_hidden(entry.name):
                continue
            try:
                found = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
                if not stat.S_ISDIR(found.st_mode):
                    yield above + entry.name, found.st_size
                    continue
                if len(levels) >= _LISTING_DEPTH:
                    raise ListingTooLong(f"directories are nested more than {_LISTING_DEPTH} deep")
                below = os.open(entry.name, _LIST, dir_fd=directory)
            except (FileNotFoundError, NotADirectoryError):
                continue  # deleted meanwhile
            deeper = ExitStack()
            deeper.callback(os.close, below)
            enter(below, deeper, f"{above}{entry.name}/")


def write_file(path: str, content: bytes, roots: Sequence[str]) -> bool:
    """Writes a file, replacing one that is there, and makes its directory if need be; whether it made that.

    Both are taken back when writing fails.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = posixpath.dirname(path)
    is_made = directory not in roots and make_directory(directory, roots)
    try:
        with _parent(path, roots) as (parent, name), open(os.open(name, flags, 0o666, dir_fd=parent), "wb") as file:
            file.write(content)
    except BaseException:
        with suppress(OSError):
            delete_file(path, roots)
        if is_made:
            with suppress(OSError):
                remove_empty_directory(directory, roots)
        raise
    return is_made


def read_file(path: str, roots: Sequence[str], limit_bytes: int) -> bytes:
    """At most so many bytes of a file from its begin. Raises OSError for what is no file: a pipe may never end."""
    real = _real(path, roots)
    with _opened(posixpath.dirname(real), _SEARCH) as parent:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(posixpath.basename(real), flags, dir_fd=parent), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "Not a regular file", path)
            return file.read(limit_bytes)


def owner_id(path: str, roots: Sequence[str]) -> int | None:
    """The id of the user who owns it; None when nothing is there."""
    try:
        return os.stat(_real(path, roots)).st_uid
    except FileNotFoundError:
        return None


def modified_s(path: str, roots: Sequence[str]) -> float | None:
    """When the file or directory itself was last changed (epoch); None when nothing is there."""
    found = _status(path, roots)
    return None if found is None else found.st_mtime


def inode(path: str, roots: Sequence[str]) -> int | None:
    """The number of the file or directory on its file system; None when nothing is there."""
    found = _status(path, roots)
    return None if found is None else found.st_ino


def _status(path: str, roots: Sequence[str]) -> os.stat_result | None:
    """Of the file or directory itself, even if it is a link."""
    try:
        with _parent(path, roots) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def delete_file(path: str, roots: Sequence[str]) -> None:
    """Deletes one file; nothing there, or a directory, is fine."""
    with _fine(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EPERM), _parent(path, roots) as (parent, name):
        os.unlink(name, dir_fd=parent)


@contextmanager
def _fine(*numbers: int) -> Iterator[None]:
    """Errors of these numbers count for nothing."""
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


def _real(path: str, roots: Sequence[str]) -> str:
    """The path without links. Raises LeadsOutside."""
    real = os.path.realpath(path)
    _require_inside(real, path, roots)
    return real


def _require_inside(real: str, path: str, roots: Sequence[str]) -> None:
    if not _is_inside(real, path, roots):
        raise LeadsOutside(errno.EPERM, "A symbolic link leads out of warehouse.allowed_locations", path)


def _is_inside(real: str, path: str, roots: Sequence[str]) -> bool:
    # Those that the path names come first, so that the others, which may be thousands or on a mount that hangs, are
    # not asked.
    named = (root for root in roots if _lies_in(path, root))
    others = (root for root in roots if not _lies_in(path, root))
    return any(_lies_in(real, os.path.realpath(root)) for root in chain(named, others))


def _lies_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


@contextmanager
def _parent(path: str, roots: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The directory that the path's last name lies in, opened, and that name, which may be that of a link."""
    directory, name = posixpath.split(path)
    if not name:
        raise PermissionError(errno.EPERM, "The root of the file system is never changed", path)
    real = os.path.realpath(directory)
    if path not in roots:
        _require_inside(f"{real.rstrip('/')}/{name}", path, roots)
    with _opened(real, _SEARCH) as opened:
        yield opened, name


@contextmanager
def _opened(real: str, flags: int) -> Iterator[int]:
    """A directory opened name by name, so that none of them is a link by now."""
    steps = [name for name in real.split("/") if name]
    directory = os.open("/", _SEARCH if steps else flags)
    try:
        for index, name in enumerate(steps, start=1):
            below = os.open(name, flags if index == len(steps) else _SEARCH, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory
    finally:
        os.close(directory)
