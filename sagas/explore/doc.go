// Package explore walks every state that one seat can reach under the kernel,
// breadth first: every outcome of a provider call (done, refused, lost before
// or after it landed), a crash at every point, a retirement, a cancellation and
// a change of the seat by itself at every point. At each state it asserts the
// laws, and at the end that from each of them the life can still end.
//
// The provider is a few lines of truth about what really exists, so that what
// the records claim can be compared with it. A violation is told with the
// shortest path that leads to it.
package explore
