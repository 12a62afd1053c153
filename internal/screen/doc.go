// Package screen keeps what a terminal shows, so that somebody who comes late
// sees the whole screen at once. The emulator is a library; this package keeps
// it within what it does well, keeps beside it the modes that it does not
// give back, and writes a repaint that any terminal understands.
package screen
