"""A source of record batches in files, one batch each: the smallest plugin with a BatchSourceTask."""

import time
from pathlib import Path

from connect.api import BatchSourceTask, Config, RawBatch, SourceConnector, setting
from kafka_client.records import Codec, build_batch


class BatchFilesConfig(Config):
    """Writes the batches in a folder to a partition of a topic."""

    folder: str = setting("The folder.")
    topic: str = setting("The topic.")
    stop: bool = setting("Whether to end with the files.", default=False)


class BatchFilesTask(BatchSourceTask):
    def start(self, config):
        self.config = BatchFilesConfig.parse(config)
        self.source = {"folder": self.config.folder}
        self.last = (self.context.offsets.offset(self.source) or {"file": ""})["file"]
        self.committed = []

    def poll(self):
        paths = [p for p in sorted(Path(self.config.folder).glob("*.batch")) if p.name > self.last][:2]
        if not paths and self.config.stop:
            self.context.finished()
        if paths:
            self.last = paths[-1].name
        return [
            RawBatch(self.config.topic, 1, path.read_bytes(), self.source, {"file": path.name})
            for path in paths
        ]

    def commit_batch(self, batch, offset):
        self.committed.append((batch.source_offset["file"], offset))


class BatchFiles(SourceConnector):
    CONFIG = BatchFilesConfig
    task_class = BatchFilesTask

    def exactly_once_support(self, config):
        return True


def write_batches(folder, numbers, *, codec=Codec.LZ4, **changed):
    """Write a file with two records for each two numbers; a record's headers, key and time are its own."""
    numbers = list(numbers)
    for start in range(0, len(numbers), 2):
        records = [(1000 + n, b"k%d" % n, b"%d" % n, (("h", b"x"),)) for n in numbers[start : start + 2]]
        data = build_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=5, **changed)
        (folder / f"{time.time_ns():020}.batch").write_bytes(data)
