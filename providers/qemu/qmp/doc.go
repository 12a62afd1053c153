// Package qmp speaks QEMU's monitor protocol: JSON objects over one unix
// socket. A socket has one client at a time; a second one would only wait.
package qmp
