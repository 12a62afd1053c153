// Package kill proves that the program may be killed anywhere: its tests run
// the real `berth up`, with its embedded server, have it end itself with
// SIGKILL before or after a chosen append or driver call, start it again, and
// lay what the log says beside what the provider really holds: nothing is lost,
// nothing is done twice, nothing is invented (blueprint section 10, laws 1 to 4).
//
// The points are generated from the table of steps, and by listening to a life
// in which nothing is killed, so that a new step adds its own. `go test` kills
// at a sample that depends on a seed alone; BERTH_PROVE=1 (make prove-kill) at
// every point.
//
// The package holds nothing but tests.
package kill
