"""Tasks in processes of their own (`task.isolation=process`).

    worker's process                         task's process
    ProcessTask -- TaskSpec, pauses, stop --> task_process.main -> the same WorkerTask as in a thread
                <-- reports, log lines, offsets, topics --

They speak over a socket pair (`messages`). The task's process ends itself as soon as the worker's end of the
pair is closed.
"""
