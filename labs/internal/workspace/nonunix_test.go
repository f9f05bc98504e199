//go:build !unix

package workspace_test

import "testing"

func makePipe(t *testing.T, _ string) { t.Skip("no pipes among files here") }

func asNobody(*testing.T) bool { return false }
