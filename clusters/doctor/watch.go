package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// watchInterval is the time from one look at the disks to the next. A linker fills
// what is left within less than a second, and what it wrote is gone when it failed.
const watchInterval = 100 * time.Millisecond

// Watch looks at disks and memory while something is done that takes much of both,
// such as a compilation. Afterwards nobody could see any more that there was too little.
type Watch struct {
	exam   *examination
	places []place
	least  []uint64 // free space, by place
	killed uint64
	end    context.CancelFunc
	ended  chan struct{}
}

// Begin begins a watch. [Watch.End] ends it, and so does ctx. Without a Root, only temporary files and Go's
// caches are looked at.
func Begin(ctx context.Context, o Options) *Watch {
	return begin(ctx, o, thisMachine())
}

func begin(ctx context.Context, o Options, m machine) *Watch {
	e := &examination{Options: o, machine: m}
	w := &Watch{exam: e, places: e.places(ctx), killed: e.killedPrograms(), ended: make(chan struct{})}
	w.least = make([]uint64, len(w.places))
	for i, p := range w.places {
		w.least[i] = p.free
	}
	ctx, w.end = context.WithCancel(ctx)
	go w.keep(ctx)
	return w
}

func (w *Watch) keep(ctx context.Context) {
	defer close(w.ended)
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.sample()
		}
	}
}

func (w *Watch) sample() {
	for i, p := range w.places {
		if free, err := w.exam.free(p.path); err == nil {
			w.least[i] = min(w.least[i], free)
		}
	}
}

// End ends the watch and says what the least was that was free in each place, and
// whether memory ran out.
func (w *Watch) End() []Finding {
	w.end()
	<-w.ended
	w.sample()
	for i, p := range w.places {
		w.exam.checkDisk(p.name, p.fix, w.least[i], rootDiskStops, rootDiskWarns)
	}
	if n := w.exam.killedPrograms() - w.killed; n > 0 {
		w.exam.bad(Stops, "memory", fixMemory, "it ran out, and the kernel killed %d programs", n)
	}
	return w.exam.findings
}

// killedPrograms counts the programs that the kernel has killed for want of memory; 0
// where it does not count them.
func (e *examination) killedPrograms() (n uint64) {
	text, _ := e.text("proc/vmstat")
	for line := range strings.Lines(text) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			_, _ = fmt.Sscan(count, &n) // 0 means not known
		}
	}
	return n
}
