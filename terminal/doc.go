// Package terminal is the protocol of a terminal session over NATS: the offer
// that a manager signs for one holder, the frames that go both ways, and the
// holder's end. It knows neither the manager nor a driver.
package terminal
