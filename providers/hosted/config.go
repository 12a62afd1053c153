package hosted

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/secretfile"
	"berth/providers/hosted/wire"
)

// maxURL is the longest address, in bytes (R44).
const maxURL = 2048

// Config says where a hosted provider is and how a manager tells who it is.
type Config struct {
	Name string // under which it registers
	URL  string // https://HOST[:PORT] (R44)
	// CAFile is the authority of the provider's certificate; empty is the
	// system's.
	CAFile string
	// CertFile and KeyFile are the manager's certificate and key.
	CertFile, KeyFile string
	// BearerFile holds the manager's bearer.
	BearerFile string
	// Clock is the wall clock; nil is the system's.
	Clock func() time.Time
}

// specForm is how ParseSpec reads a provider.
const specForm = "name=https://HOST:PORT,ca=FILE,cert=FILE,key=FILE or ...,bearer=FILE"

// ParseSpec reads name=https://HOST:PORT[,ca=FILE][,cert=FILE,key=FILE]
// [,bearer=FILE], as the command line has it. bad-request names what is wrong.
func ParseSpec(spec string) (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return Config{}, fault.New(fault.BadRequest, "hosted provider: "+format, args...).WithHint(specForm)
	}
	parts := strings.Split(spec, ",")
	var c Config
	var ok bool
	if c.Name, c.URL, ok = strings.Cut(parts[0], "="); !ok {
		return bad("it begins with name=https://...")
	}
	fields := map[string]*string{"ca": &c.CAFile, "cert": &c.CertFile, "key": &c.KeyFile, "bearer": &c.BearerFile}
	for _, p := range parts[1:] {
		k, v, _ := strings.Cut(p, "=")
		at := fields[k]
		switch {
		case at == nil:
			return bad("there is no setting %q", events.Scrub(k))
		case v == "" || *at != "":
			return bad("%s must be given once, with a file", k)
		}
		*at = v
	}
	return c, c.check()
}

// check refuses what can't be right without reading any file.
func (c Config) check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.BadRequest, format, args...).WithHint(specForm)
	}
	if _, err := events.ParseActor(c.Name); err != nil {
		return bad("hosted provider name %q is not valid: letters, digits, - and _", events.Scrub(c.Name))
	}
	u, err := url.Parse(c.URL)
	switch {
	// The address is not repeated: it may hold what it must not.
	case len(c.URL) > maxURL || err != nil:
		return bad("hosted provider %s: the address is not a URL of at most %d bytes (R44)", c.Name, maxURL)
	case u.Scheme != "https":
		return bad("hosted provider %s: the address must begin with https:// (R44)", c.Name)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(c.URL, "#"):
		return bad("hosted provider %s: the address must have no user, query or fragment (R44)", c.Name)
	case u.Hostname() == "" || strings.Trim(u.Path, "/") != "":
		return bad("hosted provider %s: the address must be https://HOST[:PORT] (R44)", c.Name)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return bad("hosted provider %s: cert and key go together", c.Name)
	case c.CertFile == "" && c.BearerFile == "":
		return bad("hosted provider %s: nothing tells it who asks; give cert and key, or bearer", c.Name)
	}
	return nil
}

// tls is the one TLS of all connections: 1.3, HTTP/1.1, no fallback.
func (c Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if c.CAFile != "" {
		pool, err := secretfile.Pool(c.CAFile)
		if err != nil {
			return nil, err
		}
		t.RootCAs = pool
	} else if pool, err := x509.SystemCertPool(); err == nil {
		t.RootCAs = pool
	}
	if c.CertFile != "" {
		pair, err := secretfile.KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// bearer is the Authorization header; empty without a bearer.
func (c Config) bearer() (string, error) {
	if c.BearerFile == "" {
		return "", nil
	}
	b, err := secretfile.Bearer(c.BearerFile, wire.MinBearer, wire.MaxBearer)
	if err != nil {
		return "", err
	}
	defer clear(b)
	return "Bearer " + string(b), nil
}
