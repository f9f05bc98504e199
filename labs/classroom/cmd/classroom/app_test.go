package main

import (
	"bytes"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/clitest"
)

// root is the checkout.
const root = "../../../.."

// newTestApp is an app whose container engine is a script that knows no cluster.
func newTestApp(t *testing.T) (a *app, out, progress *bytes.Buffer) {
	t.Helper()
	shared, out, progress := clitest.New(t)
	return &app{*shared}, out, progress
}
