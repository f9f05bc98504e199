package plain_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/plain"
)

// A link of a repository can lead to a file of the kernel's that says it is empty and has 256 GB.
func TestAFileOfTheKernelsIsNotRead(t *testing.T) {
	if data, err := plain.ReadFile("/proc/self/pagemap"); err != nil || len(data) > 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
