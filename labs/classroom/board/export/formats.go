package export

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// writeCSV writes a line for each learner and lab that was tried.
func writeCSV(w io.Writer, r *Records) error {
	table := csv.NewWriter(w)
	lines := [][]string{{"learner", "lab", "title", "verdict", "passed", "tries", "last", "holds", "of", "red", "run"}}
	for _, l := range r.Learners {
		for _, lab := range r.Course.Labs {
			last := l.Last(lab.Number)
			if last == nil {
				continue
			}
			lines = append(lines, []string{
				plain.Cell(l.Name), strconv.Itoa(lab.Number), lab.Title, string(last.Verdict), strconv.FormatBool(l.Passed(lab.Number)),
				strconv.Itoa(l.Tries(lab.Number)), last.At.Format(time.RFC3339), strconv.Itoa(last.Holds), strconv.Itoa(last.Of),
				plain.Cell(strings.Join(ids(last.Red), " ")), plain.Cell(last.Run),
			})
		}
	}
	return table.WriteAll(lines)
}

func ids(red []room.Red) []string {
	all := []string{}
	for _, r := range red {
		all = append(all, r.ID)
	}
	return all
}

// The form of the JSON export. A change of its meaning needs another schema.
type (
	jsonRoom struct {
		Schema   int           `json:"schema"`
		At       time.Time     `json:"at"`
		Learners []jsonLearner `json:"learners"`
	}
	jsonLearner struct {
		Name string `json:"name"`
		// At is the lab that the learner works on.
		At    int       `json:"at"`
		Stuck string    `json:"stuck,omitempty"`
		Labs  []jsonLab `json:"labs"`
	}
	jsonLab struct {
		Lab     int             `json:"lab"`
		Verdict verdict.Verdict `json:"verdict"`
		Passed  bool            `json:"passed"`
		Tries   int             `json:"tries"`
		History []jsonAttempt   `json:"history"`
		Result  *verdict.Result `json:"result"`
	}
	jsonAttempt struct {
		Run     string          `json:"run"`
		At      time.Time       `json:"at"`
		Verdict verdict.Verdict `json:"verdict"`
		Red     []string        `json:"red"`
	}
)

func writeJSON(w io.Writer, r *Records) error {
	room := jsonRoom{Schema: 1, At: r.At, Learners: []jsonLearner{}}
	for _, l := range r.Learners {
		learner := jsonLearner{Name: l.Name, At: l.At(r.Course.Labs), Labs: []jsonLab{}}
		if stuck := l.Stuck(r.Rules, r.At); stuck != nil {
			learner.Stuck = stuck.Check.ID
		}
		for _, lab := range r.Course.Labs {
			if l.Last(lab.Number) != nil {
				learner.Labs = append(learner.Labs, r.jsonLab(l, lab.Number))
			}
		}
		room.Learners = append(room.Learners, learner)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(room)
}

func (r *Records) jsonLab(l *room.Learner, lab int) jsonLab {
	last := l.Last(lab)
	v := jsonLab{Lab: lab, Verdict: last.Verdict, Passed: l.Passed(lab), Tries: l.Tries(lab), Result: r.results[last.ID]}
	for _, a := range l.Attempts(lab) {
		v.History = append(v.History, jsonAttempt{Run: a.Run, At: a.At, Verdict: a.Verdict, Red: ids(a.Red)})
	}
	return v
}
