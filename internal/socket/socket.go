// Package socket reaches unix sockets whose path is longer than the 107 bytes
// that the kernel takes.
package socket

import (
	"fmt"
	"os"
	"path/filepath"
)

// Through is a short path to what a directory has under a name: by way of an
// open descriptor of the directory, so that it holds until done is called.
func Through(dir, name string) (path string, done func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), name), func() { _ = f.Close() }, nil
}
