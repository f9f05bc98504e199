package process

// Tail keeps the end of what is written to it: a learner's program may write without end.
type Tail struct {
	// Limit is how many bytes are kept.
	Limit int
	data  []byte
}

// Write takes all of p. Up to twice the limit is kept in between, so that most writes move nothing.
func (t *Tail) Write(p []byte) (int, error) {
	if t.data = append(t.data, p...); len(t.data) > 2*t.Limit {
		t.data = append(t.data[:0], t.data[len(t.data)-t.Limit:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string { return string(t.data[max(0, len(t.data)-t.Limit):]) }
