//go:build linux

package process

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Everything works for a plain user too: root runs the tests again as nobody.
func TestAsAPlainUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is a plain user already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "berth-plain-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "process.test")
	copyFile(t, bin)
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, tmp} {
		if err := os.Chown(p, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bin, "-test.v", "-test.run", "^(TestAWholeLife|TestAnIsolatedSeatSeesOnlyItsOwn|TestWithoutIsolation|TestASeatFromAnImage|TestAKilledCustodianTakesItsSeatAlong)$/^as_planned$")
	cmd.Dir, cmd.Env = "/", []string{"TMPDIR=" + tmp, "PATH=" + defaultPath, "HOME=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "SKIP") || strings.Contains(line, "WITHOUT") || strings.Contains(line, "refuses") {
			t.Log(line)
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func copyFile(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}
