package demo

import (
	"bytes"
	"testing"

	"github.com/example/operator-lab/labs/internal/plain/plaintest"
)

func TestTextFromElsewhereIsPlain(t *testing.T) {
	plaintest.Check(t, plaintest.Places{"what the API server says": func(*testing.T) string {
		var b bytes.Buffer
		printer{&b}.quote(plaintest.Hostile)
		return b.String()
	}})
}
