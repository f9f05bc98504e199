// Package lock keeps processes from making the same thing at the same time.
package lock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// poll is how often a waiting process looks whether the other one is done.
const poll = 200 * time.Millisecond

// Wait locks a file, and makes it and its folder first where they are missing. It waits until no other process has the
// lock.
func Wait(ctx context.Context, file string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("make lock: %w", err)
	}
	lock := flock.New(file)
	if _, err := lock.TryLockContext(ctx, poll); err != nil {
		return nil, fmt.Errorf("wait for another process that has locked %s: %w", file, err)
	}
	return func() { _ = lock.Close() }, nil
}
