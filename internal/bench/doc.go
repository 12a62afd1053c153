// Package bench measures the assembled parts beside what the raw server does
// for the same work in the same run (decision 26). Both sides take turns, so
// that whatever else the machine does hurts both, and medians are compared. A
// ratio is ours over raw. Nothing here fails because a bar is missed: the row
// says so, and a person judges.
//
// Some parts can only be measured in a process of their own: what a manager
// keeps in memory, how long one takes to start after it was killed. The
// program runs itself again for them, see Main.
package bench
