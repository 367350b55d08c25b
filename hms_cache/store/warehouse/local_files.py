"""Changes directories and files of this machine, only inside given roots.

A client that writes data may also put a symbolic link into the warehouse. So a path is resolved first, the result must
be inside the resolved root, and it is then opened name by name without following links: the object that is changed is
the one that was checked, even if a directory is replaced by a link meanwhile. Deleting a link deletes only the link.

`roots` are paths. An operation outside them raises `SymlinkLeadsOutside`, which is an OSError like all other errors
here.
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

#: An attempt fails if another deletion works inside or around the directory: this many partitions of a table may be
#: dropped at the same time.
_DELETION_ATTEMPTS = 1000

#: Maximum depth of a listing, which holds a file descriptor per level. Partitions have one level per key; deeper trees
#: do not belong to a table.
_LISTING_DEPTH = 64

#: Block size of a copy: large enough that the cost of calls is small.
_COPY_BYTES = 1 << 20

_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Maximum length of a path on Linux, with its terminating NUL.
_PATH_MAX_BYTES = 4096

DELETED_PREFIX = ".deleted-"
"""Prefix of directories that are being deleted. If one is left, the process ended during the deletion."""


class SymlinkLeadsOutside(OSError):
    """A symbolic link leads out of the allowed directories."""


class ListingTooLong(Exception):
    """A directory has more entries than may be listed, or the listing takes too long."""


def is_hidden(name: str) -> bool:
    """Whether Hive ignores the file or directory as not part of the data."""
    return name.startswith(("_", "."))


def is_within(path: str, roots: Sequence[str]) -> bool:
    """Whether the path, with symbolic links resolved, is one of the resolved roots or inside one."""
    return _is_inside(os.path.realpath(path), path, roots)


@contextmanager
def directory_within(path: str, roots: Sequence[str]) -> Iterator[int]:
    """Opens the directory for access to names in it. Raises SymlinkLeadsOutside, and FileNotFoundError if it does not
    exist."""
    with _opened(_real(path, roots), _SEARCH) as opened:
        yield opened


def is_link(parent: int, name: str) -> bool:
    """Whether the name in an opened directory is a symbolic link."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def is_directory(path: str, roots: Sequence[str]) -> bool:
    """Whether a directory exists, or a link to one inside the roots."""
    return os.path.isdir(_real(path, roots))


def is_vacant(path: str, roots: Sequence[str]) -> bool:
    """Whether nothing exists there, or only an empty directory. False if access is denied."""
    try:
        with _opened(_real(path, roots), _LIST) as directory, os.scandir(directory) as listed:
            return next(listed, None) is None
    except FileNotFoundError:
        return True
    except (NotADirectoryError, PermissionError):
        return False


def exists(path: str, roots: Sequence[str]) -> bool:
    """Whether anything of that name exists, including a broken link."""
    return _status(path, roots) is not None


def make_directory(path: str, roots: Sequence[str]) -> bool:
    """Creates the directory and its parents. Returns False if it existed, or another call created it meanwhile."""
    real = _real(path, roots)
    if len(os.fsencode(real)) >= _PATH_MAX_BYTES:
        # It could be created name by name, but other programs, such as backups, could not open it by its path.
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
                with suppress(FileExistsError):  # another call created it meanwhile, and is responsible for undoing it
                    os.mkdir(name, dir_fd=directory)
                    made = True
                below = os.open(name, _SEARCH, dir_fd=directory)
            os.close(directory)
            directory = below
    finally:
        os.close(directory)
    return made


def make_directories(paths: Sequence[tuple[str, Sequence[str]]]) -> list[bool | OSError]:
    """`make_directory` for each path with its roots. An error of one does not affect the others."""
    made: list[bool | OSError] = []
    for path, roots in paths:
        try:
            made.append(make_directory(path, roots))
        except OSError as error:
            made.append(error)
    return made


def remove_empty_directory(path: str, roots: Sequence[str]) -> None:
    """Removes an empty directory. If it has entries, or is not a directory, nothing happens."""
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
    """Renames a directory. With `may_copy`, also moves it between mounts, which takes long; otherwise returns False for
    that.

    Raises FileExistsError if the destination exists.

    The destination is created first: `mkdir` succeeds for only one call, whereas a plain move to a directory that
    another call has just created would put this one *inside* it.
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
    """Copies a directory with its contents. Raises FileExistsError if the destination exists.

    Links are copied as links: their targets are checked when they are read, and are not copied to where anybody may
    read them.
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
    """Opens a directory inside an opened one."""
    found = os.open(name, _LIST, dir_fd=directory)
    try:
        yield found
    finally:
        os.close(found)


def delete(path: str, roots: Sequence[str]) -> None:
    """Deletes a file, or a directory with its contents, but nothing that is created at its path later.

    A table of the same name may be created as soon as the drop is committed. If the directory were emptied in place,
    the new table's partitions would be deleted with it. So it is renamed first, in one atomic step.
    """
    with ExitStack() as stack:
        try:
            parent, name = stack.enter_context(_parent(path, roots))
        except (FileNotFoundError, NotADirectoryError):
            return
        delete_in(parent, name)


def delete_in(parent: int, name: str) -> None:
    """Like `delete`, for a name in an opened directory. The target of a link stays."""
    aside = DELETED_PREFIX + uuid.uuid4().hex
    try:
        os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError:
        aside = name  # a mount point, or a parent directory without write permission
    crash_point(CrashPoint.SET_ASIDE)
    for attempt in range(_DELETION_ATTEMPTS):
        try:
            mode = os.stat(aside, dir_fd=parent, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return  # it was deleted with a directory that contained it
        try:
            if stat.S_ISDIR(mode):
                _delete_tree(aside, parent)
            else:
                os.unlink(aside, dir_fd=parent)
        except OSError as error:
            # Another call deletes a directory inside or around this one: the rest has to be deleted here.
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _DELETION_ATTEMPTS - 1:
                raise


def _delete_tree(name: str, parent: int) -> None:
    """Deletes a directory of any depth: subdirectories' contents are first moved up into it.

    This needs two file descriptors and the memory of one name, whereas a recursive walk needs a descriptor per level.
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
    """Deletes a directory inside `top`: deletes its files, and moves its directories up to `top`."""
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
    """The entries of a directory; empty if it does not exist."""
    try:
        with _opened(_real(path, roots), _LIST) as directory:
            return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def visible_files(
    path: str, roots: Sequence[str], *, max_entries: int, deadline_s: float
) -> Generator[tuple[str, int], None, None]:
    """Path below the directory, and size, of each visible file. Links to directories are not followed.

    Must be exhausted or closed. Raises ListingTooLong for more than `max_entries` entries, or after `deadline_s` of
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
                raise ListingTooLong(f"{entries} entries examined")
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
    """Writes a file, replacing an existing one, and creates its directory if necessary; returns whether it did.

    Both are undone if writing fails.
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
    """At most `limit_bytes` from the beginning of a file. Raises OSError if it is not a regular file, since a pipe may
    never end."""
    real = _real(path, roots)
    with _opened(posixpath.dirname(real), _SEARCH) as parent:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(posixpath.basename(real), flags, dir_fd=parent), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "Not a regular file", path)
            return file.read(limit_bytes)


def owner_id(path: str, roots: Sequence[str]) -> int | None:
    """The id of the owner; None if nothing exists there."""
    try:
        return os.stat(_real(path, roots)).st_uid
    except FileNotFoundError:
        return None


def modified_s(path: str, roots: Sequence[str]) -> float | None:
    """Last change of the file or directory itself (epoch seconds); None if nothing exists there."""
    found = _status(path, roots)
    return None if found is None else found.st_mtime


def inode(path: str, roots: Sequence[str]) -> int | None:
    """The inode number of the file or directory; None if nothing exists there."""
    found = _status(path, roots)
    return None if found is None else found.st_ino


def _status(path: str, roots: Sequence[str]) -> os.stat_result | None:
    """Status of the file or directory itself, even if it is a link."""
    try:
        with _parent(path, roots) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def delete_file(path: str, roots: Sequence[str]) -> None:
    """Deletes one file. It is no error if it does not exist or is a directory."""
    with _fine(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EPERM), _parent(path, roots) as (parent, name):
        os.unlink(name, dir_fd=parent)


@contextmanager
def _fine(*numbers: int) -> Iterator[None]:
    """Ignores OSErrors with these numbers."""
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


def _real(path: str, roots: Sequence[str]) -> str:
    """The path with links resolved. Raises SymlinkLeadsOutside."""
    real = os.path.realpath(path)
    _require_inside(real, path, roots)
    return real


def _require_inside(real: str, path: str, roots: Sequence[str]) -> None:
    if not _is_inside(real, path, roots):
        raise SymlinkLeadsOutside(errno.EPERM, "A symbolic link leads out of warehouse.allowed_locations", path)


def _is_inside(real: str, path: str, roots: Sequence[str]) -> bool:
    # Roots that contain the path by name come first, so that the others, which may be thousands or on a mount that
    # hangs, are not accessed.
    named = (root for root in roots if _lies_in(path, root))
    others = (root for root in roots if not _lies_in(path, root))
    return any(_lies_in(real, os.path.realpath(root)) for root in chain(named, others))


def _lies_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


@contextmanager
def _parent(path: str, roots: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Opens the directory that contains the path's last name; returns it with that name, which may be a link's."""
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
    """Opens a directory name by name, so that none of them can have become a link."""
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
