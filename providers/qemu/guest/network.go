//go:build linux

package guest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// card is the guest's one network card; cardPatience, how long it may take to
// appear after its module was loaded.
const (
	card         = "eth0"
	cardPatience = 10 * time.Second
)

// joinNetwork gives the card the address that QEMU's network has for it.
func joinNetwork() error {
	for end := time.Now().Add(cardPatience); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat("/sys/class/net/" + card); err == nil {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("no network card within %s", cardPatience)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, set := range []struct {
		card string
		ask  uint
		with func(*unix.Ifreq) error
	}{
		{"lo", unix.SIOCSIFFLAGS, up},
		{card, unix.SIOCSIFADDR, address(Address)},
		{card, unix.SIOCSIFNETMASK, address("255.255.255.0")},
		{card, unix.SIOCSIFFLAGS, up},
	} {
		r, err := unix.NewIfreq(set.card)
		if err == nil {
			err = set.with(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, set.ask, r)
		}
		if err != nil {
			return fmt.Errorf("network card %s: %w", set.card, err)
		}
	}
	return defaultRoute(fd)
}

func up(r *unix.Ifreq) error {
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return nil
}

func address(a string) func(*unix.Ifreq) error {
	return func(r *unix.Ifreq) error {
		b := netip.MustParseAddr(a).As4()
		return r.SetInet4Addr(b[:])
	}
}

// rtentry is struct rtentry of linux/route.h, on 64 bits.
type rtentry struct {
	_                     uint64
	dst, gateway, genmask [16]byte // sockaddr_in
	flags                 uint16
	_                     int16
	_, _                  uint64
	metric                int16
	dev                   uintptr
	mtu, window           uint64
	irtt                  uint16
}

// defaultRoute sends what is for nobody here to the gateway.
func defaultRoute(fd int) error {
	in := func(a string) (s [16]byte) {
		binary.NativeEndian.PutUint16(s[:], unix.AF_INET)
		b := netip.MustParseAddr(a).As4()
		copy(s[4:], b[:])
		return s
	}
	r := rtentry{dst: in("0.0.0.0"), gateway: in(Gateway), genmask: in("0.0.0.0"), flags: unix.RTF_UP | unix.RTF_GATEWAY}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); e != 0 {
		return fmt.Errorf("default route: %w", e)
	}
	return nil
}
