//go:build !linux

package meter

import (
	"errors"
	"fmt"
	"time"
)

// Machine is not known here: errors.ErrUnsupported.
func Machine() (time.Duration, error) {
	return 0, fmt.Errorf("read processor time of the machine: %w", errors.ErrUnsupported)
}

// Tree is not known here: errors.ErrUnsupported.
func Tree() (time.Duration, error) {
	return 0, fmt.Errorf("read processor time: %w", errors.ErrUnsupported)
}
