package components

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// reportPeriod is how often a build that takes minutes says how far it is.
const reportPeriod = 10 * time.Second

// counter counts the lines that are written to it: go build -v writes one for each package that it compiles.
type counter struct{ lines atomic.Int64 }

func (c *counter) Write(data []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(data, []byte("\n"))))
	return len(data), nil
}

// follow says now and then how many packages were compiled, until stop is called.
func (b *Builder) follow(ctx context.Context, m module, names []string) (stop func()) {
	if b.Log == nil {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	packages := make([]string, 0, len(names))
	for _, name := range names {
		packages = append(packages, m.packages[name])
	}
	// Those that were compiled before are among them, so that a build may end early. Without modules to ask, there is
	// no total.
	all, _ := b.goCommand(ctx, m, append([]string{"list", "-deps"}, packages...)...)
	total := len(strings.Fields(all))
	b.packages.lines.Store(0)
	go func() {
		tick := time.NewTicker(reportPeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.log(fmt.Sprintf("building %s: %d of %d packages", strings.Join(names, " "), b.packages.lines.Load(), total))
			}
		}
	}()
	return stop
}
