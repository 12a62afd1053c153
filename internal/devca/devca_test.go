package devca

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/events/fault"
	"berth/internal/secretfile"
)

// What Make writes can be read back as keys and certificates, secrets are
// their owner's, and an authority is never overwritten.
func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	if err := Make(dir, []string{"127.0.0.1", "host.example"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for cert, key := range map[string]string{CA: CAKey, Provider: ProviderKey, Manager: ManagerKey} {
		if _, err := secretfile.KeyPair(filepath.Join(dir, cert), filepath.Join(dir, key)); err != nil {
			t.Error(err)
		}
	}
	if _, err := secretfile.Pool(filepath.Join(dir, CA)); err != nil {
		t.Error(err)
	}
	if _, err := secretfile.Bearer(filepath.Join(dir, Bearer), 32, 4096); err != nil {
		t.Error(err)
	}
	if err := Make(dir, nil, time.Now()); fault.CodeOf(err) != fault.AlreadyExists {
		t.Errorf("a second authority: %v", err)
	}
	key := filepath.Join(dir, ManagerKey)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := secretfile.KeyPair(filepath.Join(dir, Manager), key); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("a key that others may read: %v", err)
	}
	if _, err := secretfile.Pool(key); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("a key is no authority: %v", err)
	}
}
