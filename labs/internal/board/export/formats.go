package export

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/board/page"
	"github.com/example/operator-lab/labs/internal/board/room"
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
				harmless(l.Name), strconv.Itoa(lab.Number), lab.Title, string(last.Verdict), strconv.FormatBool(l.Passed(lab.Number)),
				strconv.Itoa(l.Tries(lab.Number)), last.At.Format(time.RFC3339), strconv.Itoa(last.Holds), strconv.Itoa(last.Of),
				harmless(strings.Join(ids(last.Red), " ")), harmless(last.Run),
			})
		}
	}
	return table.WriteAll(lines)
}

// harmless is text that no spreadsheet takes for a formula.
func harmless(text string) string {
	if strings.ContainsAny(text[:min(len(text), 1)], "=+-@\t\r") {
		return "'" + text
	}
	return text
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

// JUnit, as far as the readers of it agree on it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Timestamp string      `xml:"timestamp,attr"`
		Cases     []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    float64       `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// writeJUnit writes a suite for each learner and lab that was tried: its last verdict.
func writeJUnit(w io.Writer, r *Records) error {
	all := junitSuites{}
	for _, l := range r.Learners {
		for _, lab := range r.Course.Labs {
			if last := l.Last(lab.Number); last != nil {
				all.Suites = append(all.Suites, newSuite(l.Name, last, r.results[last.ID]))
			}
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", " ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func newSuite(learner string, last *room.Attempt, result *verdict.Result) junitSuite {
	class := "lab-" + strconv.Itoa(last.Lab)
	s := junitSuite{Name: learner + ", lab " + strconv.Itoa(last.Lab), Timestamp: last.At.UTC().Format("2006-01-02T15:04:05")}
	if result.Build != nil {
		s.Cases = append(s.Cases, junitCase{Class: class, Name: "build", Failure: &junitMessage{result.Build.Output}})
	}
	if result.Verdict == verdict.Environment {
		s.Cases = append(s.Cases, junitCase{Class: class, Name: "environment", Error: &junitMessage{result.Environment.Finding}})
	}
	for _, c := range result.Checks {
		s.Cases = append(s.Cases, newCase(class, c, result.Verdict == verdict.Environment))
	}
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	s.Tests = len(s.Cases)
	return s
}

// newCase is one check. What a machine at fault says of a check does not count.
func newCase(class string, c verdict.Check, unjudged bool) junitCase {
	v := junitCase{Class: class, Name: c.ID, Time: c.Seconds}
	switch {
	case unjudged:
		v.Skipped = &junitMessage{"the machine was at fault"}
	case c.State == verdict.Failed:
		v.Failure = &junitMessage{"expected " + c.Expected + "; saw " + c.Seen}
	case c.State == verdict.Blocked:
		v.Skipped = &junitMessage{"waits for " + c.BlockedBy}
	case c.State == verdict.NotChecked:
		v.Skipped = &junitMessage{"this cluster cannot tell"}
	}
	return v
}

// writeHTML writes a copy of the page, with what its cells open.
func writeHTML(w io.Writer, r *Records) error {
	summary := room.Summarize(r.Learners, r.Course.Labs, r.Rules, r.At)
	board := page.Board{At: r.At, Labs: page.Labs(r.Course), Summary: page.NewSummary(summary, r.At)}
	var sections []page.Section
	for _, l := range r.Learners {
		board.Rows = append(board.Rows, page.NewRow(l, r.Course.Labs, r.Rules, r.At))
		for _, lab := range r.Course.Labs {
			if last := l.Last(lab.Number); last != nil {
				detail := page.NewDetail(r.Course, l, lab, last.ID, r.results[last.ID])
				sections = append(sections, page.Section{Learner: l.ID, Lab: lab.Number, Detail: detail})
			}
		}
	}
	return board.RenderCopy(w, sections)
}
