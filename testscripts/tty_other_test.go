//go:build !linux

package testscripts

import "github.com/rogpeppe/go-internal/testscript"

// cmdOnTerminal needs the terminals of Linux.
func cmdOnTerminal(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("only on Linux") }
