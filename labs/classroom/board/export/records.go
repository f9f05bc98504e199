// Package export writes what is on a board for spreadsheets and for programs.
package export

import (
	"context"
	"io"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Records are all that a board holds at a moment.
type Records struct {
	At     time.Time
	Course *course.Course
	Rules  room.Rules
	// Learners are sorted by name.
	Learners []*room.Learner
	// results are the last ones of each learner and lab, by their ids.
	results map[int64]*verdict.Result
}

// Read reads the whole board.
func Read(ctx context.Context, s *store.Store, c *course.Course, rules room.Rules, now time.Time) (*Records, error) {
	r := &Records{At: now, Course: c, Rules: rules, results: map[int64]*verdict.Result{}}
	byID := map[int64]*room.Learner{}
	attempts := map[int64][]room.Attempt{}
	// Results first: a learner is kept before their first result. There may be gigabytes of them, of which little is written.
	err := s.Each(ctx, 0, func(result store.Result) error {
		parsed, err := result.Parse()
		if err == nil && parsed.Lab <= len(c.Labs) {
			attempts[result.Learner] = append(attempts[result.Learner], room.NewAttempt(result.ID, result.At, parsed))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	learners, err := s.Learners(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range learners {
		byID[l.ID] = room.NewLearner(l.ID, l.Name)
		r.Learners = append(r.Learners, byID[l.ID])
	}
	room.SortByName(r.Learners)
	for id, those := range attempts {
		for _, attempt := range those {
			byID[id].Add(attempt)
		}
		for _, lab := range c.Labs {
			last := byID[id].Last(lab.Number)
			if last == nil {
				continue
			}
			result, err := s.Result(ctx, last.ID)
			if err != nil {
				return nil, err
			}
			if r.results[last.ID], err = result.Parse(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Format is a way to write records.
type Format struct {
	// Name is what the command line calls it.
	Name string
	// ContentType and Extension are for a download.
	ContentType, Extension string
	Write                  func(io.Writer, *Records) error
}

// Formats are all that there are.
func Formats() []Format {
	return []Format{
		{"csv", "text/csv; charset=utf-8", "csv", writeCSV},
		{"json", "application/json", "json", writeJSON},
	}
}

// ByName finds a format. An unknown one is an error of usage.
func ByName(name string) (Format, error) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, exit.Usage("%q is no format: use csv or json", name)
}
