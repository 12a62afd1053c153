package terminal

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"berth/events/fault"
)

func TestFramesComeThrough(t *testing.T) {
	for _, f := range []Frame{
		{Kind: KindData, Seq: 1 << 60, Data: []byte("\x00\xe6\x97\xa5{}")},
		{Kind: KindData, Seq: 1, Data: []byte{}},
		{Kind: KindReady, Rows: 24, Cols: 80, Writer: true},
		{Kind: KindDrop, Bytes: 1 << 40},
		{Kind: KindEnd, Reason: EndDespawn, Detail: "why"},
		{Kind: "of a later version"},
	} {
		b, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v, %v; not %+v", got, err, f)
		}
	}
	most, _ := Frame{Kind: KindData, Data: make([]byte, MaxFrame)}.Encode()
	if _, err := Decode(most); err != nil {
		t.Errorf("the longest frame: %v", err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "too long": append(most, 0), "a short data frame": {1, 0}, "data as JSON": []byte(`{"t":"data"}`),
		"no kind": []byte(`{}`), "long JSON": []byte(`{"t":"ping","detail":"` + strings.Repeat("x", MaxOffer) + `"}`),
	} {
		if f, err := Decode(b); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, x := range []Frame{{Kind: KindData, Seq: 7, Data: []byte("x")}, {Kind: KindResize, Rows: 1, Cols: 2}, {Kind: KindEnd, Reason: EndExit}} {
		b, _ := x.Encode()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Decode(b)
		if err != nil {
			return
		}
		again, err := x.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if x.Kind == KindData && !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
		y, err := Decode(again)
		if err != nil && len(again) <= MaxOffer || err == nil && !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v, then %+v, %v", x, y, err)
		}
	})
}

// Every field of an offer is under its signature, and the proof is of its
// holder for this offer alone.
func TestNothingOfAnOfferCanBeChanged(t *testing.T) {
	key, _ := nkeys.CreateUser()
	holder, _ := nkeys.CreateUser()
	issuer, _ := key.PublicKey()
	public, _ := holder.PublicKey()
	o, err := Offer{Version: Version, Session: "s", Holder: public, Epoch: 1, Window: Window}.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Check(issuer); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		was := reflect.New(v.Field(i).Type()).Elem()
		was.Set(v.Field(i))
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int, reflect.Int64:
			f.SetInt(f.Int() + 1)
		case reflect.Uint64:
			f.SetUint(f.Uint() + 1)
		case reflect.Struct:
			f.Field(0).SetString("x")
		}
		if o.Check(issuer) == nil {
			t.Errorf("%s was changed and is accepted", v.Type().Field(i).Name)
		}
		v.Field(i).Set(was)
	}
	proof, err := Prove(o, holder)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Redemption{Offer: o, Proof: proof}).CheckProof(); err != nil {
		t.Fatal(err)
	}
	other := o
	other.Session = "another"
	if other, err = other.Sign(key); err != nil {
		t.Fatal(err)
	}
	if (Redemption{Offer: other, Proof: proof}).CheckProof() == nil {
		t.Error("a proof is good for another offer")
	}
}
