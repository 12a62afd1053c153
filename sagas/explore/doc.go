// Package explore walks every state that the pure core can reach in a small
// world, breadth first, to a stated bound: one name in one or two lives, the
// managers of two instances (one of which may stall anywhere and wake up
// later), everything that people may ask, every outcome of a provider call
// (done, refused, lost before or after it landed, answered late) and what an
// environment does by itself. The core is the product's: aggregates, their
// tables, sagas.Next and what turns answers into events.
//
// At each state and at each append it asserts the laws, by number, and at the
// end that from each state everything can still come to its end. What the
// records claim is compared with a few lines of truth about what really
// exists. A violation is told with the shortest conversation that leads to it.
//
// # What makes the walk small, and why that is sound
//
//   - States are told apart by what the core and the laws look at. Ids are
//     only names, and an epoch or an instance matters only by whether it is
//     the one that acts: two states that differ by a renaming are one.
//   - One name is walked alone. What a kernel sees is one boundary, and no
//     event of one changes another, so that the states of two names are the
//     pairs of the states of each; Pair walks two together, with the crashes
//     and the clock that they share, and asserts just that.
//   - A manager that stalled and whose view is old differs from one that died
//     by nothing but a refused append (law 3), so that all old views are one.
//     The same holds for a decision that loses against a client's append.
//   - A turn of the runner puts several decisions in one commit; here each is
//     a commit. Every state between two commits of the runner is one here.
//   - Time has three moments: the beginning; readiness and most patience over;
//     the lifetime over. A wait between two tries ends at any point.
//
// What is bounded is Budget, and said in the Report. Readings of a provider
// (probe, question, observation) are answered at one moment.
package explore
