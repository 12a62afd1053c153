// Package cluster proves the log on three servers: clients append by
// compare-and-append to shared boundaries of a stream with three replicas
// while its leader is killed, a server is cut off (stopped, so that its
// connections stay open and say nothing), all are restarted in turn, and the
// store of a follower is taken away.
//
// The history that the clients saw is checked for linearizability, boundary by
// boundary, with porcupine; every acknowledged commit must be in the log once,
// and a refused one never; and after each disturbance every client must get on.
//
// It holds tests only. A run takes minutes, most of it elections of 4 to 9
// seconds, so it needs BERTH_PROVE=1: make prove-cluster.
package cluster
