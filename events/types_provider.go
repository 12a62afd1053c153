package events

import (
	"time"

	"berth/events/fault"
)

// ---- provider.<environmentId>, in the log of a served provider

// ProviderAccepted is the intent of a served provider (law 1): durable before
// the driver behind it hears of the operation. Digest is that of verb,
// environment, arguments and plan: the same id with another one is a conflict.
type ProviderAccepted struct {
	Operation OperationID `json:"operation"`
	Verb      Verb        `json:"verb"`
	Digest    string      `json:"digest"`
	// Expires is the end of the environment that the operation asks for.
	Expires *time.Time `json:"expires,omitempty"`
	// Writer is the manager that asked, and its epoch.
	Writer *Writer `json:"writer,omitempty"`
}

// ProviderFenced excludes an operation that never arrived: it is refused if it
// does.
type ProviderFenced struct {
	Operation OperationID `json:"operation"`
	Verb      Verb        `json:"verb"`
	Digest    string      `json:"digest"`
}

// ProviderAnswered is what became of an operation, once and for all: by the
// driver's answer, or by a proof. With facts it has landed; without, nothing
// was executed and nothing will be.
type ProviderAnswered struct {
	Operation OperationID  `json:"operation"`
	Verb      Verb         `json:"verb"`
	Digest    string       `json:"digest"`
	Facts     *Facts       `json:"facts,omitempty"`
	Fault     *fault.Error `json:"fault,omitempty"` // of a refusal
	Evidence  string       `json:"evidence"`
}
