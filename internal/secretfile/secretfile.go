// Package secretfile reads the files that tell who somebody is: bearers, keys
// and certificates. What it refuses names the file and never what is in it.
package secretfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os"

	"berth/events/fault"
)

// maxFile is the longest file that is read, in bytes.
const maxFile = 1 << 20

// certsHint is how the files of a provider and its managers come to be.
const certsHint = "`berth provider certs DIR` makes an authority, certificates, their keys and a bearer"

// read reads a file; a secret one must be its owner's alone. hint is where one
// that is not there comes from.
func read(file string, secret bool, hint string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "%s can't be read: it is not there, or not yours", file).WithHint("%s", hint)
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil || !st.Mode().IsRegular():
		return nil, fault.New(fault.BadRequest, "%s is not a plain file", file)
	case st.Size() > maxFile:
		return nil, fault.New(fault.BadRequest, "%s has more than %d bytes", file, maxFile)
	case secret && st.Mode().Perm()&0o077 != 0:
		return nil, fault.New(fault.BadRequest, "%s is a secret that others may read", file).WithHint("chmod 600 %s", file)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fault.New(fault.BadRequest, "%s can't be read", file)
	}
	return b, nil
}

// Bearer reads a bearer of shortest to longest bytes: one line of visible
// ASCII. Space around it is dropped.
func Bearer(file string, shortest, longest int) ([]byte, error) {
	raw, err := read(file, true, certsHint)
	if err != nil {
		return nil, err
	}
	b := bytes.TrimSpace(raw)
	if len(b) < shortest || len(b) > longest {
		return nil, fault.New(fault.BadRequest, "%s must hold %d to %d bytes, it has %d", file, shortest, longest, len(b))
	}
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return nil, fault.New(fault.BadRequest, "%s must hold one line of visible ASCII", file)
		}
	}
	return b, nil
}

// Text reads a secret text whole.
func Text(file string) ([]byte, error) {
	return read(file, true, "name a file that is there and that you may read")
}

// KeyPair reads a certificate and its key, both PEM.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := read(certFile, false, certsHint)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := read(keyFile, true, certsHint)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer clear(key)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fault.New(fault.BadRequest, "%s and %s are not a certificate and its key in PEM", certFile, keyFile)
	}
	return pair, nil
}

// Pool reads the certificates of authorities.
func Pool(file string) (*x509.CertPool, error) {
	raw, err := read(file, false, certsHint)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fault.New(fault.BadRequest, "%s holds no certificate in PEM", file)
	}
	return pool, nil
}
