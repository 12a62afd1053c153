// Package plane has the handlers of every command: reads answer from the
// projections, writes are decisions on a boundary, and goals are accepted
// durably and continued after a crash. It knows no transport: package service
// binds it to NATS, and tests call Handle.
package plane
