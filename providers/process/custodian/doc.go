// Package custodian is the small process that holds one seat: its terminal,
// its output, its lifetime and the proof of its exit. It is started by the
// driver as `berth __custodian DIR`, outlives the manager, and knows neither
// the log nor the network. The rest of the package is the driver's side of
// its control socket and of its output files.
package custodian
