// Package docker is the provider over the Docker Engine API, on the engine's
// unix socket. Containers are named and labelled by the operation that made
// them, addressed by their full id only, and looked at again before and after
// each change. docs/docker.md says what it can't prove.
package docker
