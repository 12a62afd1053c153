//go:build linux

// Package sign sees the signs by which a seat shows that it is ready: a line on
// a descriptor, and a port on which one of its processes listens. It looks from
// inside of what holds the seat: a host, or a virtual machine.
package sign

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"berth/providers/process/identity"
)

// MaxLine bounds the line by which a seat says that it is ready, in bytes.
const MaxLine = 4096

// portCheck is how often it is looked whether a seat listens: nothing tells.
const portCheck = 100 * time.Millisecond

// Line waits for one line, or for the end of all who could write it; false: it
// did not come, or was longer than MaxLine.
func Line(said io.Reader) bool {
	line, err := bufio.NewReaderSize(io.LimitReader(said, MaxLine), MaxLine).ReadSlice('\n')
	return err == nil && len(line) > 0
}

// Port waits until a process below this one listens on a TCP port, in the
// network namespace of pid; false: done was closed before. No connection is made.
func Port(pid, port int, done <-chan struct{}) bool {
	for !listens(pid, port) {
		select {
		case <-done:
			return false
		case <-time.After(portCheck):
		}
	}
	return true
}

// listens says that a process below this one holds a TCP socket that listens
// on the port, in the network namespace of pid: another program of the host
// that has the port is not the seat.
func listens(pid, port int) bool {
	held := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		if f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table)); err == nil {
			for _, inode := range listeners(f, port) {
				held["socket:["+inode+"]"] = true
			}
			_ = f.Close()
		}
	}
	if len(held) == 0 {
		return false
	}
	for _, p := range identity.Descendants(os.Getpid()) {
		dir := fmt.Sprintf("/proc/%d/fd", p.PID)
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended
		}
		for _, fd := range fds {
			if to, err := os.Readlink(dir + "/" + fd.Name()); err == nil && held[to] {
				return true
			}
		}
	}
	return false
}

// listeners reads the inodes of the sockets that listen on the port out of a
// table of the kernel (proc(5), /proc/net/tcp).
func listeners(table io.Reader, port int) []string {
	const stateListen = "0A"
	var inodes []string
	sc := bufio.NewScanner(table)
	for sc.Scan() {
		f := bytes.Fields(sc.Bytes())
		if len(f) < 10 || string(f[3]) != stateListen {
			continue
		}
		if colon := bytes.LastIndexByte(f[1], ':'); colon >= 0 && string(f[1][colon+1:]) == fmt.Sprintf("%04X", port) {
			inodes = append(inodes, string(f[9]))
		}
	}
	return inodes
}
