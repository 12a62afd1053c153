package commands

import (
	"reflect"
	"strings"
	"testing"

	"berth/internal/connector"
)

// The schema's connectors are those of the table.
func TestConnectorsOfTheSchema(t *testing.T) {
	f, _ := reflect.TypeFor[SpawnInput]().FieldByName("Connector")
	if got, want := f.Tag.Get("enum"), strings.Join(connector.Names(), ","); got != want {
		t.Errorf("the schema has %s, and the table %s", got, want)
	}
}
