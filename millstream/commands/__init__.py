"""The subcommands of `millstream`: a folder for each noun or verb."""
