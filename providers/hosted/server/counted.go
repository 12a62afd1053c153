package server

import (
	"net"
	"sync"
)

// counted gives its place back when it is closed, once.
type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
