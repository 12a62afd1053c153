// Package barrier is the durability of the group profile: one shared fsync of
// the stream's newest block file for all commits that wait (decision 4).
//
// It relies on what the embedded server does, so every part of it is guarded:
//
//   - a file stream of one replica writes a record into its block with
//     write(2) before it acknowledges. SelfTest shows it at every start, with
//     the very server that will be used, and the version of that server is
//     pinned: anything else falls back to the strict profile
//   - blocks are named <n>.blk and only grow, n by one at a time. The stream
//     denies deletes and purges. Sealed blocks that the server rewrites to
//     compress them are synced by it before they are renamed
//   - a failed fsync is never tried again: the kernel may have dropped the
//     pages, so nothing is known any more and every later Wait fails
//
// It works only in the server's own process or at least on its host: it opens
// the server's files.
package barrier
