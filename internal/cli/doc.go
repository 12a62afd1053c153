// Package cli is the program's command line: it parses arguments, makes one
// call, and prints what came back. Standard output is data and standard error
// is talk; a script gets documents with stable field names, one error line
// with an outcome, and an exit code that tells refused from unknown.
//
// Everything that a person or a script may rely on is here and in
// berth/commands; nothing here decides anything.
package cli
