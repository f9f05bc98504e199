// Package embeddedtest tests the embedded control plane with real processes. It
// needs no container engine.
package embeddedtest
