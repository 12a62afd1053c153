// Package sagastest is one world for the tests of the engine: a log in memory,
// a simulated provider that misbehaves as scripted, and an engine over both,
// which can be killed at any point and started again with the next epoch.
//
// A world lives in the bubble of testing/synctest: time is virtual, so that
// patience of minutes costs nothing and nothing depends on how busy the
// machine is.
package sagastest
