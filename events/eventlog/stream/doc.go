// Package stream is the log on NATS JetStream: one stream per space, one
// message per commit, one subject per boundary.
//
// An append is one publish with the boundary's expected last sequence, which
// the server checks under the stream's lock. Its duplicate window is never
// relied on: a publish whose acknowledgement was lost is settled by reading
// the boundary.
//
// With one replica, reads are direct gets. With more, the stream allows no
// direct get, because a follower may answer it with an older state: reads go
// to the leader (decision 8).
package stream
