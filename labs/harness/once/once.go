// Package once lets the parallel processes of one run share an expensive result: the first that asks
// makes it, the others wait for it and read it.
package once

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2/maybe"
)

// retry is how often a waiting process asks for the lock; the lock has no queue to wait in.
const retry = 50 * time.Millisecond

// Do returns what produce returned the first time it succeeded for this key and this folder, in whichever
// process that was. The folder belongs to one run and is made if it is missing. An error of produce is not
// remembered: the next who asks tries again.
func Do(ctx context.Context, dir, key string, produce func() ([]byte, error)) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for shared results: %w", err)
	}
	lock := flock.New(filepath.Join(dir, key+".lock"))
	if _, err := lock.TryLockContext(ctx, retry); err != nil {
		return nil, fmt.Errorf("wait for %s, which another process of this run is making: %w", key, err)
	}
	defer func() { _ = lock.Unlock() }()

	path := filepath.Join(dir, key)
	if data, err := os.ReadFile(path); err == nil {
		return data, nil
	}
	data, err := produce()
	if err != nil {
		return nil, err
	}
	// In one step, so that a process that is killed leaves no half of a result.
	if err := maybe.WriteFile(path, data, 0o644); err != nil {
		return nil, fmt.Errorf("keep shared result: %w", err)
	}
	return data, nil
}
