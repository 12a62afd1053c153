package boot

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"berth/providers/qemu/guest"
)

// maxProgram bounds one program or library, in bytes.
const maxProgram = 512 << 20

// Tools are the programs of this host that template minimal has, where the
// host has them; sh is needed.
var Tools = []string{
	"sh", "bash", "cat", "ls", "echo", "sleep", "mkdir", "rm", "rmdir", "mv", "cp", "ln", "chmod", "touch", "date", "env", "id", "kill",
	"head", "tail", "wc", "sort", "tr", "cut", "seq", "grep", "sed", "awk", "find", "xargs", "tar", "gzip", "dd", "df", "du", "sync",
	"stty", "tty", "uname", "hostname", "ps", "true", "false", "test", "printf", "pwd", "mktemp", "od", "sha256sum", "base64", "tee",
	"yes", "timeout", "dirname", "basename", "readlink", "realpath", "stat", "nproc", "whoami", "expr", "uniq", "cmp", "diff", "mount", "umount", "free",
}

// Write packs the initramfs for kernel k with the program at self as agent.
func Write(w io.Writer, k Kernel, self string) error {
	a := NewArchive(w)
	for _, d := range []string{"/proc", "/sys", "/dev", "/etc", "/root"} {
		a.Dir(d, 0o755)
	}
	a.File("/etc/passwd", 0o644, []byte("root:x:0:0:root:"+guest.Home+":/bin/sh\n"))
	a.File("/etc/group", 0o644, []byte("root:x:0:\n"))
	a.File("/etc/resolv.conf", 0o644, []byte("nameserver "+guest.Nameserver+"\n"))
	a.File("/etc/hosts", 0o644, []byte("127.0.0.1 localhost\n"))
	if err := addModules(a, k, guest.OrderFile, wanted); err != nil {
		return err
	}
	if k.Network() == nil {
		if err := addModules(a, k, guest.NetworkFile, network); err != nil {
			return err
		}
	}
	p := &programs{a: a, have: map[string]bool{}}
	if err := p.add(self, guest.Init); err != nil {
		return fmt.Errorf("packing the agent: %w", err)
	}
	a.Link("/bin/berth", guest.Init) // a delegated seat begins with it
	for _, t := range Tools {
		path, err := lookTool(t)
		if err != nil {
			if t == "sh" {
				return errors.New("this host has no sh to copy into a guest")
			}
			continue
		}
		if err := p.add(path, "/bin/"+t); err != nil {
			return fmt.Errorf("packing %s: %w", t, err)
		}
	}
	return a.Close()
}

// addModules packs modules, and their order into a file of that name. What is
// built into the kernel is left out.
func addModules(a *Archive, k Kernel, name string, modules []string) error {
	var order strings.Builder
	for _, m := range modules {
		b, err := k.module(m)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Release, err)
		}
		if b == nil {
			continue
		}
		a.File(filepath.Join(guest.ModulesDir, m+".ko"), 0o644, b)
		order.WriteString(m + ".ko\n")
	}
	a.File(filepath.Join(guest.ModulesDir, name), 0o644, []byte(order.String()))
	return nil
}

// lookTool finds a program with its links resolved; a manager's own PATH may
// lack what is in sbin.
func lookTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
