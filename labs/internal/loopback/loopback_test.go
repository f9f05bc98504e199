package loopback_test

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/example/operator-lab/labs/internal/loopback"
)

func TestFreePortsDiffer(t *testing.T) {
	addresses, err := loopback.Free(50)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if n, _ := strconv.Atoi(port); err != nil || n < 11000 || n >= 30000 {
			t.Errorf("%s: a kernel or Kubernetes may give that port to others: %v", address, err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			continue
		}
		defer l.Close() // also keeps the same one from being free twice
	}
	if slices.Sort(addresses); len(slices.Compact(addresses)) != 50 {
		t.Errorf("%d addresses", len(addresses))
	}
}
