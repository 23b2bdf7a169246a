"""Dumps files of any kind, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from logd.dump_log.findings import Findings
from logd.dump_log.indexes import dump_index, dump_time_index
from logd.dump_log.options import Options
from logd.dump_log.segments import dump_segment
from logd.dump_log.transactions import dump_snapshot, dump_txn_index
from logd.storage.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)


def dump(paths: Sequence[Path], options: Options, out: TextIO, err: TextIO) -> bool:
    """Print what stands in the files, and to `err` what is wrong with them; whether all are sound."""
    findings = Findings(err)
    for path in paths:
        print(f"Dumping {path}", file=out)
        try:
            _dump(path, options, out, findings)
        except BrokenPipeError:  # the reader has closed the pipe, as `head` does
            raise
        except (OSError, ValueError) as error:
            findings.complain(path, getattr(error, "strerror", None) or error)
    out.flush()
    findings.show()
    return not findings.corrupt


def _dump(path: Path, options: Options, out: TextIO, findings: Findings) -> None:
    suffix = path.suffix
    if suffix == LOG_SUFFIX:
        dump_segment(path, options, out, findings)
    elif suffix == INDEX_SUFFIX:
        dump_index(path, options, out, findings)
    elif suffix == TIME_INDEX_SUFFIX:
        dump_time_index(path, options, out, findings)
    elif suffix == SNAPSHOT_SUFFIX:
        dump_snapshot(path, out, findings)
    elif suffix == TXN_INDEX_SUFFIX:
        dump_txn_index(path, out, findings)
    else:
        print(f"Ignoring unknown file {path}", file=findings.err)
