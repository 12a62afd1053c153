package berth

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth/events/fault"
)

func TestDataDirKeepsItsIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := OpenDataDir(path, "default")
	if err != nil {
		t.Fatal(err)
	}
	first := d.Identity
	if !d.Fresh || first.Instance == "" || first.Caller.Owner != "local" {
		t.Fatalf("fresh identity: %+v", d)
	}
	if _, err := OpenDataDir(path, "default"); fault.ExitOf(err) != fault.ExitDataInUse {
		t.Fatalf("a second manager got in: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, err = OpenDataDir(path, "default")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Fresh || d.Identity != first {
		t.Fatalf("identity changed: %+v, was %+v", d.Identity, first)
	}
}

func TestDataDirRefusals(t *testing.T) {
	make := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "data")
		d, err := OpenDataDir(path, "default")
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		return path
	}
	for name, test := range map[string]func(t *testing.T) (string, error){
		"another space": func(t *testing.T) (string, error) {
			p := make(t)
			_, err := OpenDataDir(p, "other")
			return p, err
		},
		"a copy": func(t *testing.T) (string, error) {
			p := make(t)
			moved := p + "-copy"
			if err := os.Rename(p, moved); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(moved, "default")
			return moved, err
		},
		"a damaged identity": func(t *testing.T) (string, error) {
			p := make(t)
			if err := os.WriteFile(filepath.Join(p, identityFile), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(p, "default")
			return p, err
		},
		"half an identity": func(t *testing.T) (string, error) {
			p := make(t)
			if err := os.WriteFile(filepath.Join(p, identityFile), []byte(`{"space":"default"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(p, "default")
			return p, err
		},
		"an identity that is gone, beside its log": func(t *testing.T) (string, error) {
			p := make(t)
			if err := errors.Join(os.Remove(filepath.Join(p, identityFile)), os.Mkdir(filepath.Join(p, natsDir), 0o700)); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(p, "default")
			if _, there := os.Stat(filepath.Join(p, identityFile)); there == nil {
				t.Error("another identity was made")
			}
			return p, err
		},
		"a key that is gone": func(t *testing.T) (string, error) {
			p := make(t)
			if err := os.Remove(filepath.Join(p, seedFile)); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(p, "default")
			return p, err
		},
		"a place that can't be written": func(*testing.T) (string, error) {
			_, err := OpenDataDir("/proc/berth", "default") // also root can't
			return "/proc/berth", err
		},
		"a file": func(t *testing.T) (string, error) {
			p := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenDataDir(p, "default")
			return p, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test(t)
			if fault.ExitOf(err) != fault.ExitBadConfig {
				t.Fatalf("got %v, exit %d", err, fault.ExitOf(err))
			}
		})
	}
}

func TestReadEndpointWithoutAManager(t *testing.T) {
	for name, raw := range map[string][]byte{"none": nil, "empty": {}, "half": []byte(`{"nats":"nats://127`), "another": []byte(`{}`)} {
		dir := t.TempDir()
		if raw != nil {
			if err := os.WriteFile(filepath.Join(dir, endpointFile), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := ReadEndpoint(dir)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Unavailable || f.Outcome != fault.NotExecuted || f.Hint == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Nothing unauthenticated is reachable from another machine.
func TestOnlyLoopbackListensInOpenMode(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:4222", "example.com:4222", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"} {
		if _, _, err := listenAddress("--listen", addr); fault.ExitOf(err) != fault.ExitBadConfig {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		if _, _, err := listenAddress("--listen", addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
