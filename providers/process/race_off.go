//go:build linux && !race

package process

// roleEnv is added to the environment of the program's hidden roles.
var roleEnv []string
