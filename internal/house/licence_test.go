package house

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every module that is compiled into the program or its tests has a licence
// that the project accepts; MPL-2.0 is for tests only.
func TestLicencesAreAccepted(t *testing.T) {
	build := theBuild(t)
	shipped := shippedModules(build)
	seen := map[string]bool{}
	for _, p := range build {
		if p.Standard || p.Module == nil || p.Module.Path == module || seen[p.Module.Path] {
			continue
		}
		seen[p.Module.Path] = true
		if p.Module.Dir == "" {
			t.Errorf("%s is not downloaded, so its licence can't be read: go mod download", p.Module.Path)
			continue
		}
		got := licencesOf(p.Module.Dir)
		if len(got) == 0 {
			t.Errorf("%s %s: no licence that is recognised in %s", p.Module.Path, p.Module.Version, p.Module.Dir)
		}
		allowed := slices.Concat(licencesShipped, licencesTestOnly)
		if shipped[p.Module.Path] {
			allowed = licencesShipped
		}
		for _, l := range got {
			if !slices.Contains(allowed, l) {
				t.Errorf("%s %s has licence %s; allowed here: %v (shipped: %v)", p.Module.Path, p.Module.Version, l, allowed, shipped[p.Module.Path])
			}
		}
	}
	if own := licencesOf(theTree(t).root); !slices.Equal(own, []string{"Apache-2.0"}) {
		t.Errorf("the project's own LICENSE reads as %v, want Apache-2.0", own)
	}
}

// shippedModules are those that the program and the library are made of, tests
// and test support left out.
func shippedModules(build map[string]listed) map[string]bool {
	mods := map[string]bool{}
	for _, p := range build {
		if !ours(p.ImportPath) || p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") || supportsTests(p.ImportPath) {
			continue
		}
		for _, d := range append(p.Deps, p.ImportPath) {
			if m := build[d].Module; m != nil {
				mods[m.Path] = true
			}
		}
	}
	return mods
}

func licencesOf(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		up := strings.ToUpper(e.Name())
		// LICENSE.docs is that of a module's texts, of which none is shipped.
		if e.IsDir() || strings.HasSuffix(up, ".DOCS") || !strings.HasPrefix(up, "LICEN") && !strings.HasPrefix(up, "COPYING") && !strings.HasPrefix(up, "UNLICENSE") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil
		}
		if l := classify(string(b)); l != "" && !slices.Contains(found, l) {
			found = append(found, l)
		}
	}
	slices.Sort(found)
	return found
}

// classify names a licence by sentences that only it has; a text it does not
// know is "unknown", which no list allows.
func classify(text string) string {
	t := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, l := range []struct{ name, mark string }{
		{"AGPL", "gnu affero general public license version"},
		{"GPL", "gnu general public license version"},
		{"LGPL", "gnu lesser general public license version"},
		{"Apache-2.0", "apache license version 2.0"},
		{"Apache-2.0", "licensed under the apache license, version 2.0"},
		{"MPL-2.0", "mozilla public license version 2.0"},
		{"MPL-2.0", "mozilla public license, version 2.0"},
		{"BSD", "redistribution and use in source and binary forms"},
		{"ISC", "permission to use, copy, modify, and/or distribute this software"},
		{"ISC", "permission to use, copy, modify, and distribute this software"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"Unlicense", "this is free and unencumbered software released into the public domain"},
	} {
		if strings.Contains(t, l.mark) {
			return l.name
		}
	}
	return "unknown"
}

func TestClassifyKnowsWhatItDoesNotKnow(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n  Version 2.0, January 2004":  "Apache-2.0",
		"all rights reserved, ask us":                  "unknown",
		"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3": "AGPL",
		"Mozilla Public License Version 2.0":           "MPL-2.0",
	} {
		if got := classify(text); got != want {
			t.Errorf("%q reads as %s, want %s", text, got, want)
		}
	}
}
