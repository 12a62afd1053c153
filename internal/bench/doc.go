// Package bench measures the assembled parts beside what the raw server does
// for the same work in the same run. A ratio compares wall time: 1 is as fast
// as raw, and less is slower. Nothing here passes or fails; the figures are
// for a person, or a script, to judge.
package bench
