"""The nouns of the language: `KStream`, `KTable` and the groupings between them, one or a pair per file.

They are signatures only: how nodes are put into the graph is in the files beside this package, of which each
noun holds an object: a `KStream` a `Stream`, a `KTable` a `Table`, a `KGroupedStream` a `Grouping`.

Each one's methods return others. A stream is grouped, a grouping is counted into a table: so far imports
point downward, from `kstream` to `ktable`. Two ways lead back up to `KStream`, whose files import it for type
checkers only:

- A split stream has streams as branches. `KStream.split` hands `BranchedKStream` what makes them.
- A table is read as a stream. `KTable.to_stream` imports `KStream` when it is called. Its signature names the
  class anyway, and one import there is plainer than a function handed to every table.
"""
