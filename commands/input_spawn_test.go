package commands

import (
	"testing"

	"berth/events"
	"berth/providers"
)

// A provider's defaults fill in what a spawn does not say, and nothing else.
func TestASpawnIsFilled(t *testing.T) {
	d := providers.Defaults{Image: &events.Image{Kind: "template", Reference: "minimal"}, CPUs: "1", Memory: "256MiB"}
	p, err := SpawnInput{}.Filled(d).Plan()
	if err != nil || p.Image.Reference != "minimal" || p.Resources.CPUs.String() != "1" || p.Resources.MemoryMiB != 256 {
		t.Errorf("%+v, %v", p, err)
	}
	said := SpawnInput{Image: &ImageInput{Kind: "oci", Reference: "/x"}, CPUs: "2", Memory: "1GiB"}
	if p, err = said.Filled(d).Plan(); err != nil || p.Image.Kind != "oci" || p.Resources.CPUs.String() != "2" || p.Resources.MemoryMiB != 1024 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = (SpawnInput{}).Filled(providers.Defaults{}).Plan(); err != nil || p.Image.Reference != DefaultImage {
		t.Errorf("%+v, %v", p, err)
	}
}
