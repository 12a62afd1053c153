//go:build race

package projections_test

// raced: the race detector's own memory is counted with the heap.
const raced = true
