// Package enginetest tests scripts/engine.sh with a private engine. It needs root, asks sudo for it, and has no code of
// its own.
package enginetest
