package docker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/providers"
	"berth/providers/providertest"
)

func plan() events.Plan {
	return events.Plan{Provider: Name, Image: events.Image{Kind: "oci", Reference: "example/seat@" + imageDigest},
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 128}, Lifetime: time.Hour, Command: []string{"sleep", "600"}}
}

func options(socket string, p events.Plan) providertest.Options {
	return providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d, err := Open(Config{Dir: t.TempDir(), Socket: socket})
			if err != nil {
				t.Fatalf("%v", err)
			}
			return d
		},
		Plan: p,
	}
}

// TestConformance holds the driver to the contract over a scripted engine
// (R1-R12, R26, R32-R41, R61, R86, R89, R92, H14).
func TestConformance(t *testing.T) {
	for _, c := range providertest.Checks {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, options(newFake(t).socket, plan())) })
	}
}

// TestConformanceWithAnEngine does so over a real engine, where one answers
// and BERTH_DOCKER_IMAGE names an image of it by digest.
func TestConformanceWithAnEngine(t *testing.T) {
	socket, image := os.Getenv("BERTH_DOCKER_SOCKET"), os.Getenv("BERTH_DOCKER_IMAGE")
	if socket == "" {
		socket = DefaultSocket
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := newClient(socket).engine(ctx); err != nil {
		t.Skipf("NO DOCKER ENGINE: the driver was tried against a scripted one only: %v", err)
	}
	if image == "" {
		t.Skipf("A DOCKER ENGINE ANSWERS, but BERTH_DOCKER_IMAGE (an image with sleep in it, by digest) is not set: the driver was tried against a scripted one only")
	}
	p, none := plan(), "none"
	p.Image.Reference, p.Network = image, &none // an engine may have no bridge
	providertest.Run(t, options(socket, p))
}

// The name under which the docs tell people to look is the one that is used.
func TestHintsNameTheContainer(t *testing.T) {
	if got := nameOf("0198c0de-0000-7000-8000-000000000001"); !strings.HasPrefix(got, "berth-0198c0de") {
		t.Error(got)
	}
}
