package env

import (
	"context"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/trace"
)

// beginTrace begins to write down what happens to the objects of the checks, for a run with a manager.
// Only the first process does.
func beginTrace(ctx context.Context) *trace.Watcher {
	if !current.config.NeedsManager() {
		return nil
	}
	path := filepath.Join(current.config.Artifacts, trace.File)
	// The API server keeps the name of the program for what a client without a name of its own writes.
	return trace.Watch(ctx, current.admin, path, gvk, filepath.Base(os.Args[0]))
}
