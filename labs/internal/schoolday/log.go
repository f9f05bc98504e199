package schoolday

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// diary tells what happened when, and how long the parts of the day took.
type diary struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
	parts []part
}

type part struct {
	what string
	took time.Duration
}

func newDiary(out io.Writer) *diary { return &diary{out: out, began: time.Now()} }

// say writes a line with the time since the day began.
func (d *diary) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.began)
	fmt.Fprintf(d.out, "%3d:%02d  %s\n", int(now.Minutes()), int(now.Seconds())%60, fmt.Sprintf(format, args...))
}

// time does something, and keeps how long it took.
func (d *diary) time(what string, do func() error) error {
	d.say("%s", what)
	began := time.Now()
	err := do()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = append(d.parts, part{what, time.Since(began)})
	return err
}

// table is what the day took, in Markdown, as docs/classroom.md has it.
func (d *diary) table() {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprint(d.out, "\n| part of the day | took |\n|---|---|\n")
	for _, p := range d.parts {
		fmt.Fprintf(d.out, "| %s | %s |\n", p.what, minutes(p.took))
	}
	fmt.Fprintf(d.out, "| all of it | %s |\n", minutes(time.Since(d.began)))
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
}
