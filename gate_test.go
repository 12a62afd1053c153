package berth

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"berth/internal/embedded"
)

func TestFindSocketReadsTheKernelsTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1
   1: 0100007F:A1B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000    42        0 2 1
   2: 0000000000000000FFFF00000100007F:A1B3 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000    43        0 3 1
`
	for addr, want := range map[string]int{"127.0.0.1:41394": 42, "127.0.0.1:41395": 43} {
		uid, ok := findSocket(bufio.NewScanner(strings.NewReader(table)), netip.MustParseAddrPort(addr))
		if !ok || uid != want {
			t.Errorf("%s belongs to %d, %v; want %d", addr, uid, ok, want)
		}
	}
	if _, ok := findSocket(bufio.NewScanner(strings.NewReader(table)), netip.MustParseAddrPort("127.0.0.1:9")); ok {
		t.Error("a socket that is not there was found")
	}
}

func TestSocketOwnerIsThisUser(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	uid, known := socketOwner(c.LocalAddr().(*net.TCPAddr).AddrPort())
	if !known {
		t.Skip("this kernel has no /proc/net/tcp: connections can't be told apart by user")
	}
	if uid != os.Geteuid() {
		t.Fatalf("the socket belongs to %d, this process to %d", uid, os.Geteuid())
	}
}

// A client may send commands; it can't write to the log or reach JetStream.
func TestClientsReachCommandsOnly(t *testing.T) {
	srv, _ := embedded.ForTest(t, func(o *embedded.Options) {
		o.Listen, o.Port = true, server.RANDOM_PORT
		o.Configure = func(so *server.Options) { so.CustomClientAuthentication = gate{"default", "box"} }
	})
	denied := make(chan error, 16)
	nc, err := nats.Connect(srv.ClientURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, subject := range []string{"berth.default.event.seat.local.demo", "$JS.API.STREAM.INFO.BERTH_default", "berth.other.cmd.any.ls.none._.local.a.b", "$O.other.C.x", "$JS.API.STREAM.MSG.GET.OBJ_box", "$JS.API.STREAM.PURGE.OBJ_box"} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantDenied(t, denied, subject)
	}
	if _, err := nc.SubscribeSync("berth.>"); err != nil {
		t.Fatal(err)
	}
	wantDenied(t, denied, "subscription berth.>")
	_, err = nc.Request("berth.default.cmd.any.ls.none._.local.a.b", nil, 10*time.Second)
	if !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("a command with no manager: %v", err)
	}
}

func wantDenied(t *testing.T, denied <-chan error, what string) {
	t.Helper()
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s was not denied", what)
	}
}
