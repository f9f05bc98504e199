//go:build unix

package schoolday

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/classroom"
)

// The end of a day removes the room and its board.
func TestADayIsNotPlayedWhereARoomIs(t *testing.T) {
	for name, occupy := range map[string]func(state string) error{
		"a room": func(state string) error {
			r := &classroom.Room{Schema: 1, Provider: "kind"}
			r.Grow(2)
			return r.Save(state)
		},
		"a board": func(state string) error { return os.MkdirAll(filepath.Join(state, "board"), 0o700) },
	} {
		root := t.TempDir()
		if err := occupy(filepath.Join(root, ".lab")); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadDir(filepath.Join(root, ".lab"))
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), Options{Root: root, Learners: 1, Cluster: "kind", Out: io.Discard}); !errors.Is(err, ErrOccupied) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadDir(filepath.Join(root, ".lab")); err != nil || len(after) != len(before) {
			t.Errorf("%s: %v is there, %v was (%v)", name, after, before, err)
		}
	}
}
