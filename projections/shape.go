package projections

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// shape is a digest of every field that a snapshot stores. A program whose
// aggregates have other fields ignores the snapshot of this one, without
// anybody having to remember a version.
var shape = sync.OnceValue(func() string {
	var b strings.Builder
	describe(&b, reflect.TypeFor[dump](), map[reflect.Type]bool{})
	describe(&b, reflect.TypeFor[liveDump](), map[reflect.Type]bool{})
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
})

func describe(b *strings.Builder, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(b, "%s %s;", t.String(), t.Kind())
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(b, t.Elem(), seen)
	case reflect.Map:
		describe(b, t.Key(), seen)
		describe(b, t.Elem(), seen)
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(b, "%s %s{", f.Name, f.Tag)
			describe(b, f.Type, seen)
			b.WriteString("}")
		}
	}
}
