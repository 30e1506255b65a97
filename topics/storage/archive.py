"""A backup archive: one stream that any tar lists and unpacks, and that tells by itself whether it is whole.

    backup.json     what was backed up, and how large it is (`Manifest`)
    wal/…  snapshots/…  segments/…    the files, as `docs/FORMAT.md` describes them
    SHA256SUMS      a checksum for each member above, in their order, as `sha256sum -c` takes it
    1024 zeros      the end

Members are written in one pass and read in one pass, so neither side needs more than a chunk of memory or a second look
at the source. What cannot be told from a checksum is told by the form: header blocks have a sum of their own, padding
is zero, nothing may be missing or added, and the last member vouches for all others. An archive that ends early is
therefore never taken for a whole one, and neither is one with a changed byte.

The stream may be compressed with gzip; a reader sees that from its first two bytes.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator

import msgspec

from topics.errors import Damaged, InvalidRequest, NotUnderstood
from topics.jsontext import NOT_UNDERSTOOD
from topics.storage.fs import File, FileSystem

FORMAT_VERSION = 1
MANIFEST_NAME = "backup.json"
SUMS_NAME = "SHA256SUMS"
CHUNK_BYTES = 1 << 20
MANIFEST_BYTES_MAX = 1 << 30
GZIP_LEVEL_MAX = 9

BLOCK_BYTES = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK_BYTES)

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_NAME = re.compile(r"(?:wal|segments|snapshots)/[0-9][0-9A-Za-z.-]*")
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")
_PERMISSIONS = 0o640

OnBytes = Callable[[int], None]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds. A change of meaning raises `format`; a reader refuses others."""

    format: int
    program: str
    created_ms: int
    snapshot_no: int
    files: int
    bytes: int
    """Of all files together. Some that can be derived may be missing, so it is an upper bound."""
    positions: dict[str, int]
    """The last position of each log, by its id: what a restored directory must come back with."""


class ArchiveWriter:
    """`member` for each file, `end` last; every call gives the next chunks of the stream."""

    def __init__(self, modified_s: int) -> None:
        self._modified_s = modified_s
        self._sums: list[str] = []

    def member(self, name: str, length_bytes: int, chunks: Iterable[bytes | bytearray]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        written_bytes = 0
        yield self._header(name, length_bytes)
        for chunk in chunks:
            digest.update(chunk)
            written_bytes += len(chunk)
            yield bytes(chunk)
        if written_bytes != length_bytes:
            message = f"{name} has {written_bytes} bytes where it had {length_bytes} a moment ago"
            raise Damaged(message, file=name, offset=written_bytes)
        self._sums.append(f"{digest.hexdigest()}  {name}\n")
        yield bytes(-length_bytes % BLOCK_BYTES)

    def end(self) -> Iterator[bytes]:
        sums = "".join(self._sums).encode()
        yield from self.member(SUMS_NAME, len(sums), [sums])
        yield END

    def _header(self, name: str, length_bytes: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = length_bytes, self._modified_s, _PERMISSIONS
        return info.tobuf(tarfile.GNU_FORMAT)


def check_level(level: int) -> int:
    """A level of compression, if it is one; 0 is none."""
    if not 0 <= level <= GZIP_LEVEL_MAX:
        expected = f"a whole number from 0 (none) to {GZIP_LEVEL_MAX} (best)"
        raise InvalidRequest(f"gzip must be {expected}, not {level}", field="gzip", expected=expected)
    return level


def gzipped(chunks: Iterable[bytes], level: int) -> Iterator[bytes]:
    """The same stream, compressed; level 0 leaves it as it is."""
    if not level:
        yield from chunks
        return
    press = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
    for chunk in chunks:
        if pressed := press.compress(chunk):
            yield pressed
    yield press.flush()


def gathered(chunks: Iterable[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """The same stream in pieces that are worth handing on: smaller ones are joined."""
    waiting: list[bytes] = []
    waiting_bytes = 0
    for chunk in chunks:
        waiting.append(chunk)
        waiting_bytes += len(chunk)
        if waiting_bytes >= chunk_bytes:
            yield b"".join(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield b"".join(waiting)


class Archive:
    """Reads an archive once, from front to back. `manifest`, then every one of `members`: only then is it verified."""

    def __init__(self, fs: FileSystem, path: str, on_bytes: OnBytes = lambda count: None) -> None:
        self.path = path
        self._source = _Source(fs.open(path, "read"), on_bytes)
        self._sums: list[tuple[str, str]] = []
        self._names: set[str] = set()

    def close(self) -> None:
        self._source.close()

    def manifest(self) -> Manifest:
        found = self._next_header()
        if found is None or found.name != MANIFEST_NAME:
            raise self._damaged(0, f"it does not begin with {MANIFEST_NAME}: this is no backup")
        if found.size > MANIFEST_BYTES_MAX:
            raise self._damaged(0, f"its {MANIFEST_NAME} would have {found.size} bytes: this is no backup")
        body = b"".join(self._contents(found))
        try:
            # The version first: another one may have other fields.
            version = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("format")
            if version is not None and bytes(version) != b"%d" % FORMAT_VERSION:
                raise NotUnderstood(
                    f"{self.path} is in backup format {bytes(version).decode()}; this program reads format "
                    f"{FORMAT_VERSION}; most likely a newer version has written it: restore it with that one",
                    file=self.path,
                    offset=0,
                )
            return msgspec.json.decode(body, type=Manifest)
        except NOT_UNDERSTOOD as error:
            raise self._damaged(BLOCK_BYTES, f"{MANIFEST_NAME} cannot be read: {error}") from error

    def members(self) -> Iterator[tuple[str, int, Iterator[bytes]]]:
        """Name, length and bytes of each file. A file's bytes are good once the whole iteration is over."""
        while True:
            at = self._source.offset
            found = self._next_header()
            if found is None:
                raise self._damaged(at, f"it ends without {SUMS_NAME}")
            if found.name == SUMS_NAME:
                self._check_sums(at, b"".join(self._contents(found)))
                return
            if not _NAME.fullmatch(found.name):
                raise self._damaged(at, f"it holds {found.name!r}, which no backup does")
            if found.name in self._names:
                raise self._damaged(at, f"it holds {found.name} twice")
            self._names.add(found.name)
            contents = self._contents(found)
            yield found.name, found.size, contents
            for _ in contents:
                pass  # What nobody wanted is checked all the same.

    def _next_header(self) -> tarfile.TarInfo | None:
        at = self._source.offset
        block = self._take(BLOCK_BYTES, "a header")
        if block == bytes(BLOCK_BYTES):
            return None
        try:
            found = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise self._damaged(at, f"what should be the header of a file is not: {error}") from error
        # A tar can say that a file has fewer bytes than none.
        if not found.isreg() or found.size < 0 or block != _canonical(found):
            raise self._damaged(at, f"the header of {found.name!r} is not as a backup writes it")
        return found

    def _contents(self, found: tarfile.TarInfo) -> Iterator[bytes]:
        digest = hashlib.sha256()
        left_bytes = found.size
        while left_bytes:
            chunk = self._take(min(CHUNK_BYTES, left_bytes), found.name)
            digest.update(chunk)
            left_bytes -= len(chunk)
            yield chunk
        self._sums.append((digest.hexdigest(), found.name))
        at = self._source.offset
        if any(self._take(-found.size % BLOCK_BYTES, found.name)):
            raise self._damaged(at, f"there are bytes behind the end of {found.name} that should be zero")

    def _check_sums(self, at: int, body: bytes) -> None:
        seen = self._sums[:-1]
        lines = [_SUM.fullmatch(line) for line in body.decode("ascii", "replace").splitlines()]
        told = [(line[1], line[2]) for line in lines if line is not None]
        for (expected, name), (found, seen_name) in zip(told, seen, strict=False):
            if name != seen_name:
                raise self._damaged(at, f"{SUMS_NAME} has {name} where the archive has {seen_name}")
            if expected != found:
                raise self._damaged(at, f"{name} has the SHA-256 {found}, and {SUMS_NAME} says {expected}")
        if told != seen or len(lines) != len(seen):
            raise self._damaged(at, f"{SUMS_NAME} lists {len(told)} files, and the archive has {len(seen)}")
        at = self._source.offset
        if any(self._take(len(END), "the end")) or not self._ends():
            raise self._damaged(at, "it does not end as it was written")

    def _ends(self) -> bool:
        try:
            return not self._source.read(1) and self._source.ended
        except zlib.error:
            return False

    def _take(self, length_bytes: int, of_what: str) -> bytes:
        at = self._source.offset
        try:
            taken = self._source.read(length_bytes)
        except zlib.error as error:
            raise self._damaged(at, f"it cannot be decompressed in {of_what}: {error}") from error
        if len(taken) < length_bytes:
            message = f"it ends in the middle of {of_what}, {length_bytes - len(taken)} bytes or more are missing"
            raise self._damaged(at + len(taken), message)
        return taken

    def _damaged(self, offset: int, what: str) -> Damaged:
        where = f"offset {offset}" + (" after decompression" if self._source.compressed else "")
        advice = "This archive cannot be restored; use another one, or make one with `topics backup`"
        return Damaged(f"{self.path} {where}: {what}. {advice}", file=self.path, offset=offset)


def _canonical(found: tarfile.TarInfo) -> bytes:
    """The header that `ArchiveWriter` would have written for this file."""
    info = tarfile.TarInfo(found.name)
    info.size, info.mtime, info.mode = found.size, found.mtime, found.mode
    return info.tobuf(tarfile.GNU_FORMAT)


class _Source:
    """The bytes of a file in order, decompressed when they are compressed."""

    def __init__(self, file: File, on_bytes: OnBytes) -> None:
        self.offset = 0
        """In the decompressed stream."""
        self._file = file
        self._on_bytes = on_bytes
        self._read_bytes = 0
        self.compressed = file.read_at(0, len(_GZIP_MAGIC)) == _GZIP_MAGIC
        self._unpress = zlib.decompressobj(_GZIP_WINDOW)

    def close(self) -> None:
        self._file.close()

    @property
    def ended(self) -> bool:
        """Whether all was read, to the checksum that ends what is compressed."""
        return not self.compressed or self._unpress.eof

    def read(self, length_bytes: int) -> bytes:
        """So many bytes; fewer only at the end."""
        if not self.compressed:
            taken = self._next(length_bytes)
        else:
            parts = [b""]
            while (missing := length_bytes - sum(map(len, parts))) and (part := self._decompress(missing)):
                parts.append(part)
            taken = b"".join(parts)
        self.offset += len(taken)
        return taken

    def _decompress(self, length_bytes: int) -> bytes:
        """Up to so many bytes; none only at the end."""
        unpress = self._unpress
        while not unpress.eof:
            pressed = unpress.unconsumed_tail or self._next(CHUNK_BYTES)
            part = unpress.decompress(pressed, length_bytes)
            if part or not pressed:
                return part
        if unpress.unused_data or self._next(1):
            raise zlib.error("there is something behind its end")
        return b""

    def _next(self, length_bytes: int) -> bytes:
        taken = self._file.read_at(self._read_bytes, length_bytes)
        self._read_bytes += len(taken)
        self._on_bytes(len(taken))
        return taken
