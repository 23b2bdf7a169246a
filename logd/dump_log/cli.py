"""The command ``millstream dump-log``: the options of Kafka's tool."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from logd.dump_log.options import Options

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"

app = typer.Typer(add_completion=False, help="Print a log's files as Kafka's DumpLogSegments does.")


@app.command()
def dump_log(
    files: Annotated[
        str,
        typer.Option("--files", help="Comma-separated .log, .index, .timeindex, .txnindex, .snapshot files."),
    ],
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Print keys and payloads; implied by every decoder.")
    ] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Print records, not only batches.")
    ] = False,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="The log is one of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="The log is one of __transaction_state.")
    ] = False,
    key_decoder_class: Annotated[
        str | None, typer.Option(help="StringDecoder, IntegerDecoder or LongDecoder, package or not.")
    ] = None,
    value_decoder_class: Annotated[
        str | None, typer.Option(help="The decoder of values, as for keys.")
    ] = None,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Print only key and payload of records.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="Run the index checks a broker runs at startup.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check indexes against their log, without printing.")
    ] = False,
    max_message_size: Annotated[
        int, typer.Option(min=1, help="Bytes of the largest batch an index may point to.")
    ] = 5 * 1024 * 1024,
    max_bytes: Annotated[int, typer.Option(min=0, help="Bytes read of each log.")] = 2**31 - 1,
) -> None:
    """Print the content of a log's files, as Kafka's DumpLogSegments does. Nothing is locked or changed.

    The exit status is 1 if a file is corrupt or cannot be read; where and why goes to the standard error.
    """
    from logd.dump_log.dump import dump

    options = _options(
        key_decoder_class,
        value_decoder_class,
        offsets_decoder=offsets_decoder,
        transaction_log_decoder=transaction_log_decoder,
        print_data_log=print_data_log,
        deep_iteration=deep_iteration,
        skip_record_metadata=skip_record_metadata,
        index_sanity_check=index_sanity_check,
        verify_index_only=verify_index_only,
        max_message_size=max_message_size,
        max_bytes=max_bytes,
    )
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    paths = [Path(name) for name in files.split(",") if name]
    raise typer.Exit(0 if dump(paths, options, sys.stdout, sys.stderr) else 1)


def _options(
    key_decoder_class: str | None,
    value_decoder_class: str | None,
    *,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    print_data_log: bool,
    **others: Any,
) -> Options:
    """Return the options; `others` are fields of `Options`. An unknown decoder ends the command."""
    from logd.dump_log.decoders import columns, decode_offsets, decode_transactions
    from logd.dump_log.options import Options

    try:
        decoder = columns(key_decoder_class or STRING_DECODER, value_decoder_class or STRING_DECODER)
    except KeyError as error:
        print(f"dump-log: no decoder {error.args[0]}", file=sys.stderr)
        raise typer.Exit(2) from None
    if offsets_decoder:
        decoder = decode_offsets
    elif transaction_log_decoder:
        decoder = decode_transactions
    is_decoded = offsets_decoder or transaction_log_decoder or key_decoder_class or value_decoder_class
    return Options(decoder=decoder, print_data_log=bool(print_data_log or is_decoded), **others)
