// Command tally adds up what a proof covered: it reads what `go test -v` printed, of
// one shard or of all of them, and prints what failed, what was skipped and
// how many states, seeds, kill points, power cuts, histories and mutants there
// were. It ends with 1 if a test failed or a file has no test in it.
//
//	go run ./internal/prove/tally prove-*.out
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// maxLine bounds one line of a test's output, which may hold a whole history.
const maxLine = 64 << 20

// counted are the figures, each by how a test's log line tells it.
var counted = []struct {
	what string
	line *regexp.Regexp
}{
	{"states explored", regexp.MustCompile(`_test\.go:\d+: .*?(\d+) states,`)},
	{"seeds run", regexp.MustCompile(`_test\.go:\d+: (\d+) seeds:`)},
	{"kill points covered", regexp.MustCompile(`_test\.go:\d+: .*?(\d+) kill points`)},
	{"power cuts survived", regexp.MustCompile(`_test\.go:\d+: (\d+) power cuts`)},
	{"histories checked", regexp.MustCompile(`_test\.go:\d+: (\d+) histor(?:y|ies) checked`)},
	{"mutants killed", regexp.MustCompile(`_test\.go:\d+: (\d+) of \d+ mutants killed`)},
}

// tally is what was seen so far.
type tally struct {
	figures                 map[string]int
	passed, failed, skipped int
	told                    []string // failures and reasons of skips, as they came
}

func (t *tally) read(r io.Reader) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "--- PASS"):
			t.passed++
		case strings.HasPrefix(line, "--- SKIP"):
			t.skipped++
		case strings.HasPrefix(line, "--- FAIL"), strings.HasPrefix(line, "FAIL\t"), strings.HasPrefix(line, "panic: "):
			t.failed++
			t.told = append(t.told, line)
		case strings.Contains(line, "SKIPPED"):
			t.told = append(t.told, strings.TrimSpace(line))
		}
		for _, c := range counted {
			if m := c.line.FindStringSubmatch(line); m != nil {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					return err
				}
				t.figures[c.what] += n
			}
		}
	}
	return s.Err()
}

// report prints the tally; false says that it is not a proof.
func (t *tally) report(w io.Writer) bool {
	for _, line := range t.told {
		fmt.Fprintln(w, line)
	}
	for _, c := range counted {
		fmt.Fprintf(w, "%9d %s\n", t.figures[c.what], c.what)
	}
	fmt.Fprintf(w, "%d tests passed, %d failed, %d were skipped\n", t.passed, t.failed, t.skipped)
	return t.failed == 0 && t.passed > 0
}

func main() {
	t := &tally{figures: map[string]int{}}
	for _, name := range os.Args[1:] {
		f, err := os.Open(name)
		if err == nil {
			err = t.read(f)
			f.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tally:", err)
			os.Exit(1)
		}
	}
	if !t.report(os.Stdout) {
		os.Exit(1)
	}
}
