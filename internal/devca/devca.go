// Package devca makes a small certificate authority with one certificate for
// a provider, one for a manager, and a bearer: enough to try mutual TLS on one
// desk, or for a few machines of one owner.
package devca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"berth/events/fault"
	"berth/internal/durable"
)

// The files that Make writes.
const (
	CA           = "ca.pem"
	CAKey        = "ca-key.pem"
	Provider     = "provider.pem"
	ProviderKey  = "provider-key.pem"
	Manager      = "manager.pem"
	ManagerKey   = "manager-key.pem"
	Bearer       = "bearer"
	bearerBytes  = 32
	validFor     = 365 * 24 * time.Hour
	clockSkew    = time.Hour
	serialLength = 127 // bits
)

// Make writes an authority and what it signs into dir. Hosts are the names and
// addresses of the provider. A directory that has an authority already is
// refused with already-exists: what it signed would be worth nothing.
func Make(dir string, hosts []string, now time.Time) error {
	if err := durable.MakeDir(dir); err != nil {
		return fault.New(fault.FailedPrecondition, "the directory %s can't be made", dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, CA)); err == nil {
		return fault.New(fault.AlreadyExists, "%s has an authority already", dir).WithHint("name another directory, or remove that one")
	}
	ca := template("Berth test authority", now)
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	caKey, err := write(dir, CA, CAKey, ca, ca, nil)
	if err != nil {
		return err
	}
	provider := template("provider", now)
	provider.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			provider.IPAddresses = append(provider.IPAddresses, ip)
		} else {
			provider.DNSNames = append(provider.DNSNames, h)
		}
	}
	if _, err := write(dir, Provider, ProviderKey, provider, ca, caKey); err != nil {
		return err
	}
	manager := template("manager", now)
	manager.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := write(dir, Manager, ManagerKey, manager, ca, caKey); err != nil {
		return err
	}
	var b [bearerBytes]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return file(dir, Bearer, []byte(base64.RawURLEncoding.EncodeToString(b[:])+"\n"))
}

func template(name string, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialLength))
	if err != nil {
		panic("devca: " + err.Error()) // crypto/rand never fails
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// write makes a key and a certificate of it; a nil parent key signs itself.
func write(dir, certName, keyName string, c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fault.New(fault.Internal, "a key can't be made")
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "a certificate of %s can't be made; are the hosts right?", c.Subject.CommonName)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fault.New(fault.Internal, "a key can't be written")
	}
	if err := file(dir, keyName, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})); err != nil {
		return nil, err
	}
	return key, file(dir, certName, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func file(dir, name string, b []byte) error {
	if err := durable.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		return fault.New(fault.FailedPrecondition, "%s can't be written", filepath.Join(dir, name))
	}
	return nil
}
