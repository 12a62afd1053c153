// Package image reads OCI images from the host's own files (an image layout
// directory or a `docker save` archive), verifies every digest on the way
// (R14), and unpacks them once per digest as the read-only root of seats.
// Nothing is fetched from a network.
package image
