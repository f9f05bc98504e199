package registry_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/registry"
)

// A request's method and uid are parts of its first line, which may have 20 KB.
func TestARecordHoldsNoPartOfTheFirstLine(t *testing.T) {
	r, err := registry.Start("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers, before := bufio.NewReader(c), heap()
	for range 1000 {
		for _, line := range []string{"GET /caches/a?" + strings.Repeat("x", 19<<10), strings.Repeat("M", 19<<10) + " /caches/a"} {
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\n\r\n", line)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	}
	if grown := int64(heap()-before) >> 20; grown > 4 {
		t.Errorf("2000 requests are remembered in %d MiB", grown)
	}
	if n := len(r.Requests("a")); n < 1000 {
		t.Errorf("%d are remembered", n)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
