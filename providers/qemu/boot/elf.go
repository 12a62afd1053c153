package boot

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// libraryDirs are where shared libraries are looked for.
var libraryDirs = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
	"/usr/lib/x86_64-linux-gnu/systemd",
}

// programs packs programs of the host together with the loader and the
// libraries that they name, each once.
type programs struct {
	a    *Archive
	have map[string]bool
}

// add packs the program at path under the name in the guest.
func (p *programs) add(path, name string) error {
	b, err := readFile(path, maxProgram)
	if err != nil {
		return err
	}
	p.a.File(name, 0o755, Strip(b))
	return p.needs(path)
}

// needs packs what the file at path is linked with. A static one needs nothing.
func (p *programs) needs(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil // a script: its interpreter is another program
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type != elf.PT_INTERP || s.Filesz == 0 || s.Filesz > 4096 {
			continue
		}
		b := make([]byte, s.Filesz-1)
		if _, err := s.ReadAt(b, 0); err != nil {
			return err
		}
		if err := p.library(string(b)); err != nil {
			return err
		}
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	for _, l := range libs {
		if p.have[l] {
			continue
		}
		i := slices.IndexFunc(libraryDirs, func(d string) bool {
			_, err := os.Stat(filepath.Join(d, l))
			return err == nil
		})
		if i < 0 {
			return fmt.Errorf("%s is linked with %s, which is not in this host's library directories", path, l)
		}
		p.have[l] = true
		if err := p.library(filepath.Join(libraryDirs[i], l)); err != nil {
			return err
		}
	}
	return nil
}

// library packs one shared object where it is on this host, which is where the
// loader of this host looks, and what it needs itself.
func (p *programs) library(path string) error {
	if p.have[path] {
		return nil
	}
	p.have[path] = true
	b, err := readFile(path, maxProgram)
	if err != nil {
		return err
	}
	p.a.File(path, 0o755, b)
	return p.needs(path)
}

// Strip leaves out of a 64-bit ELF program what only debuggers read: all that
// follows the last loaded byte. What it does not understand it returns as it is.
func Strip(b []byte) []byte {
	const header = 64
	if len(b) < header || string(b[:6]) != "\x7fELF\x02\x01" {
		return b
	}
	le := binary.LittleEndian
	off, size, n := le.Uint64(b[32:]), uint64(le.Uint16(b[54:])), uint64(le.Uint16(b[56:]))
	if size != 56 || off > uint64(len(b)) || off+n*size > uint64(len(b)) {
		return b
	}
	end := off + n*size
	for i := range n {
		ph := b[off+i*size:]
		end = max(end, le.Uint64(ph[8:])+le.Uint64(ph[32:]))
	}
	if end > uint64(len(b)) {
		return b
	}
	out := slices.Clone(b[:end])
	le.PutUint64(out[40:], 0) // no section headers any more
	le.PutUint16(out[60:], 0)
	le.PutUint16(out[62:], 0)
	return out
}
