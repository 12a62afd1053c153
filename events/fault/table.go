package fault

import "slices"

// Exit is the exit code of the program for a failure (style.md goal C).
type Exit int

// The exit codes; `berth help exit-codes` prints this table.
const (
	ExitOK          Exit = 0
	ExitFailure     Exit = 1
	ExitUsage       Exit = 2
	ExitNotFound    Exit = 3
	ExitAuth        Exit = 4
	ExitConflict    Exit = 5
	ExitTimeout     Exit = 6
	ExitUncertain   Exit = 7
	ExitUnavailable Exit = 8

	ExitBadConfig   Exit = 10
	ExitNewerFormat Exit = 11
	ExitLogLost     Exit = 12
	ExitDataInUse   Exit = 13
	ExitPortInUse   Exit = 14
	ExitInterrupted Exit = 130
)

// Row is one line of the code table: everything that any surface derives from
// a code.
type Row struct {
	Code      Code
	Exit      Exit
	HTTP      int
	Outcome   Outcome // the default when an error is made
	Retryable bool    // the same request may succeed later
	Meaning   string
}

// Table lists every code once, in the order of the documentation.
var Table = []Row{
	{BadRequest, ExitUsage, 400, NotExecuted, false, "the input is not valid; the message names the field"},
	{UnsupportedVersion, ExitFailure, 400, NotExecuted, false, "a version that this program does not speak"},
	{Unauthenticated, ExitAuth, 401, NotExecuted, false, "who is asking could not be established"},
	{PermissionDenied, ExitAuth, 403, NotExecuted, false, "the caller may not do this"},
	{NotFound, ExitNotFound, 404, NotExecuted, false, "nothing of that name or id"},
	{AlreadyExists, ExitConflict, 409, NotExecuted, false, "the name is taken"},
	{Conflict, ExitConflict, 409, NotExecuted, true, "somebody else changed it first, or the id was used for something else"},
	{ContractMismatch, ExitFailure, 409, NotExecuted, false, "client and manager speak different contracts"},
	{ContractInvalid, ExitFailure, 500, NotExecuted, false, "a contract document that can't be used"},
	{FailedPrecondition, ExitConflict, 412, NotExecuted, false, "not in a state in which this can be done"},
	{DeadlineExceeded, ExitTimeout, 504, Unknown, true, "not answered in time; the work may go on"},
	{Cancelled, ExitFailure, 499, NotExecuted, false, "cancelled"},
	{Expired, ExitConflict, 410, NotExecuted, false, "an id, epoch or lifetime that is no longer current"},
	{Unavailable, ExitUnavailable, 503, Unknown, true, "nobody answers, or a source of truth can't be read"},
	{Unimplemented, ExitFailure, 501, NotExecuted, false, "this provider or host can't do that"},
	{ResourceExhausted, ExitConflict, 429, NotExecuted, true, "a limit is reached; the message names it"},
	{Internal, ExitFailure, 500, Unknown, false, "an impossible state; please report it"},
}

var codes = func() map[Code]Row {
	m := make(map[Code]Row, len(Table))
	for _, r := range Table {
		m[r.Code] = r
	}
	return m
}()

// RowOf returns the code's row; an unknown code (from a newer peer) reads as
// Internal with that code's name.
func RowOf(code Code) Row {
	if r, ok := codes[code]; ok {
		return r
	}
	r := codes[Internal]
	r.Code = code
	return r
}

// The kinds of detail that give a failure an exit code of its own.
const (
	DetailBadConfig   = "berth.bad-config"
	DetailNewerFormat = "berth.newer-format"
	DetailLogLost     = "berth.log-lost"
	DetailDataInUse   = "berth.data-in-use"
	DetailPortInUse   = "berth.port-in-use"
	// DetailUnanswered is of a change that was sent and whose connection broke
	// before the answer: something may have been done.
	DetailUnanswered = "berth.unanswered"
)

var exitDetails = map[string]Exit{
	DetailBadConfig: ExitBadConfig, DetailNewerFormat: ExitNewerFormat, DetailLogLost: ExitLogLost,
	DetailDataInUse: ExitDataInUse, DetailPortInUse: ExitPortInUse, DetailUnanswered: ExitUncertain,
}

// ExitOf is the exit code for an error: an unknown outcome is always
// ExitUncertain, unless nobody could be reached or a wait ran out, which have
// codes of their own. A connection that broke after a change was sent is
// uncertain too.
func ExitOf(err error) Exit {
	e := From(err)
	if e == nil {
		return ExitOK
	}
	for _, d := range e.Details {
		if x, ok := exitDetails[d.Kind]; ok {
			return x
		}
	}
	row := RowOf(e.Code)
	if e.Outcome == Unknown && !slices.Contains([]Code{DeadlineExceeded, Unavailable}, e.Code) {
		return ExitUncertain
	}
	return row.Exit
}
