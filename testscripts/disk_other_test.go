//go:build !linux

package testscripts

import "github.com/rogpeppe/go-internal/testscript"

func canMount() bool { return false }

func cmdTmpfs(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("tmpfs needs Linux") }
