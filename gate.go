package berth

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"berth/commands/transfer"
	"berth/events"
	"berth/terminal"
)

// gate admits clients to the embedded server in open mode. Connections of
// this process may do everything. One from loopback must belong to the user
// that runs the manager, or to root: the kernel is asked whose it is, since
// any local user can reach a loopback port. It may send commands and receive
// replies, hold its end of terminal sessions, put transcripts into the bucket of
// this instance, which it can't read, and nothing else: no client writes to the
// log or asks JetStream for anything.
type gate struct {
	space  events.Space
	bucket string
}

// Check implements server.Authentication.
func (g gate) Check(c server.ClientAuthentication) bool {
	addr, ok := c.RemoteAddress().(*net.TCPAddr)
	if !ok {
		c.RegisterUser(&server.User{Username: "manager"})
		return true
	}
	uid, known := socketOwner(addr.AddrPort())
	if known && uid != os.Geteuid() && uid != 0 {
		return false
	}
	c.RegisterUser(&server.User{Username: "local", Permissions: g.permissions()})
	return true
}

func (g gate) permissions() *server.Permissions {
	send := []string{"berth." + string(g.space) + ".cmd.>", terminal.Subject(g.space, "*", "*", terminal.In), terminal.Subject(g.space, "*", "*", terminal.Redeem), "$SRV.>"}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append(send, transfer.Subjects(g.bucket)...)},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", terminal.Subject(g.space, "*", "*", terminal.Out)}},
	}
}

// socketOwner asks the kernel for the user of the socket whose local address
// is addr. known is false where the kernel has no such table (not Linux).
func socketOwner(addr netip.AddrPort) (uid int, known bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		known = true
		uid, found := findSocket(bufio.NewScanner(f), addr)
		f.Close()
		if found {
			return uid, true
		}
	}
	return -1, known
}

// findSocket reads lines such as
// "0: 0100007F:A1B2 0100007F:1081 01 00000000:00000000 00:00000000 00000000  1000 ...".
func findSocket(lines *bufio.Scanner, addr netip.AddrPort) (uid int, found bool) {
	want := []string{socketText(addr), socketText(netip.AddrPortFrom(netip.AddrFrom16(addr.Addr().As16()), addr.Port()))}
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || !slices.Contains(want, f[1]) {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		return uid, err == nil
	}
	return 0, false
}

// socketText is an address as the kernel prints it: each 32-bit word in the
// host's byte order, which is little-endian on all machines that we build for.
func socketText(a netip.AddrPort) string {
	var b []byte
	if a.Addr().Is4() {
		v := a.Addr().As4()
		b = v[:]
	} else {
		v := a.Addr().As16()
		b = v[:]
	}
	for i := 0; i+4 <= len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(b)), a.Port())
}
