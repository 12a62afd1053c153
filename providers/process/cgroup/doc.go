// Package cgroup limits, freezes and kills the process tree of a seat with
// whatever control groups this host really offers: version 1, version 2, both
// side by side, or none. What works is found by trial (a group is made and
// removed again), never from a version number.
package cgroup
