//go:build linux && race

package qemu

const raceEnabled = true
