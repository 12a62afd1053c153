// Package testscripts holds scenarios that drive the real program with its
// embedded server, one file for each verb and one for each story. They are the
// first documentation of each behaviour; read them like that. A script waits
// for conditions (`until`), never for time, and leaves nothing running.
package testscripts
