// Package load measures how many threads of other programs compete for this machine's processors with the lab and its
// clusters. It does so on Linux; elsewhere it finds none.
package load

import (
	"sync"
	"time"
)

// interval is the time from one reading to the next. A reading looks at one small file of each process.
const interval = 500 * time.Millisecond

// Record is what was seen from [Watch] to [Record.End].
type Record struct {
	count func() int
	end   chan struct{}
	over  chan struct{}

	mu       sync.Mutex
	readings []reading
}

// reading is how many threads of others were running, or ready to run, at a moment.
type reading struct {
	at      time.Time
	threads int
}

// Watch begins a record. To the lab belong this process with all its descendants, and every Kubernetes node and control
// plane on this machine: what a learner's program does, and what a cluster does because of it, is nobody else's load.
func Watch() *Record { return watch(new(census).others) }

func watch(others func() int) *Record {
	r := &Record{count: others, end: make(chan struct{}), over: make(chan struct{})}
	go r.keep()
	return r
}

// End ends the record. It is called once.
func (r *Record) End() {
	close(r.end)
	<-r.over
}

func (r *Record) keep() {
	defer close(r.over)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		l := reading{time.Now(), r.count()}
		r.mu.Lock()
		r.readings = append(r.readings, l)
		r.mu.Unlock()
		select {
		case <-r.end:
			return
		case <-tick.C:
		}
	}
}

// During is how many threads of other programs wanted a processor from one moment to another, on average, 0 when nobody
// looked in that time.
func (r *Record) During(from, to time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, n := 0, 0
	for _, l := range r.readings {
		if !l.at.Before(from) && !l.at.After(to) {
			sum, n = sum+l.threads, n+1
		}
	}
	return float64(sum) / float64(max(n, 1))
}
