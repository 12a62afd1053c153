//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Room is how many bytes of memory a new group may still use before a limit
// above it is reached, counting what the kernel can take back; false: nothing
// above it is limited, or that can't be told.
func (l Layout) Room() (bytes int64, limited bool) {
	limit, used := "memory.limit_in_bytes", "memory.usage_in_bytes"
	if l.UnifiedLimits {
		limit, used = "memory.max", "memory.current"
	}
	for dir := l.Memory; dir != "" && dir != "/"; dir = filepath.Dir(dir) {
		most, ok := number(dir, limit)
		has, is := number(dir, used)
		if !ok || !is || most >= unlimited {
			continue
		}
		if left := max(0, most-has+inactive(dir)); !limited || left < bytes {
			bytes, limited = left, true
		}
	}
	return bytes, limited
}

// unlimited is more than any host has: version 1 says so where there is no limit.
const unlimited = 1 << 60

func number(dir, file string) (int64, bool) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil // "max" is no number
}

// inactive is what of a group's memory holds files that were not used lately.
func inactive(dir string) int64 {
	b, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	all := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 {
			all[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	if n, ok := all["total_inactive_file"]; ok { // version 1, with the groups below
		return n
	}
	return all["inactive_file"]
}
