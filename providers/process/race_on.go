//go:build linux && race

package process

// roleEnv is added to the environment of the program's hidden roles: the race
// detector would make each of them linger for a second at its end.
var roleEnv = []string{"GORACE=atexit_sleep_ms=0"}
