package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/quantile"
)

const reportSchema = 1

// Report is everything that a run of the benchmark found. Scripts read it in .lab/bench.json; a change of its meaning
// needs another Schema.
type Report struct {
	Schema   int       `json:"schema"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	// Command repeats the run.
	Command string `json:"command"`
	Seed    int64  `json:"seed"`
	Rounds  int    `json:"rounds"`
	// Short says that the run was a short one, whose numbers are no results.
	Short   bool    `json:"short,omitempty"`
	Machine Machine `json:"machine"`
	// Wrong says how the wrong answers fared.
	Wrong    WrongAnswers `json:"wrongAnswers"`
	Rows     []Row        `json:"rows"`
	Profiles []Profile    `json:"profiles"`
	Growth   []Growth     `json:"growth,omitempty"`
	Failures []Failure    `json:"failures,omitempty"`
	Samples  []Sample     `json:"samples"`
}

// Machine is what the numbers of a run are worth knowing together with.
type Machine struct {
	System     string `json:"system"` // operating system and architecture
	Kernel     string `json:"kernel"`
	Processor  string `json:"processor"`
	Cores      int    `json:"cores"`
	Bytes      uint64 `json:"memory"`
	Engine     string `json:"engine"`
	Cgroup     string `json:"cgroup"` // v1 or v2
	Kind       string `json:"kind"`
	Kubernetes string `json:"kubernetes"`
	NodeImage  string `json:"nodeImage"`
	Go         string `json:"go"`
	// Commit is that of the checkout, with "+" when there were changes.
	Commit string `json:"commit"`
}

// WrongAnswers is the record of the last run of `make mutants`. Fast verdicts that let wrong answers pass would be worth
// nothing, so it stands beside the table.
type WrongAnswers struct {
	Started time.Time `json:"started"`
	Commit  string    `json:"commit"`
	Cluster string    `json:"cluster"` // kind or embedded
	Seed    int64     `json:"seed"`
	Judged  int       `json:"judged"`
	Of      int       `json:"of"`
	Caught  int       `json:"caught"`
	Wrong   int       `json:"wrong"`
}

// ReadWrongAnswers reads the record that `make mutants` writes; without one it is zero.
func ReadWrongAnswers(path string) (w WrongAnswers, err error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	if err != nil {
		return w, fmt.Errorf("read the wrong answers of the last run: %w", err)
	}
	return w, nil
}

// say tells about the record in one sentence. commit is that of the numbers.
func (w WrongAnswers) say(commit string) string {
	if w.Judged == 0 {
		return "No run of make mutants is recorded, so nothing says that wrong answers are still caught: these numbers do not count yet."
	}
	text := fmt.Sprintf("Of the %d wrong answers there are, %d were judged on %s at commit %s on %s, seed %d: %d caught as they should be, %d not.",
		w.Of, w.Judged, orUnknown(w.Cluster), orUnknown(w.Commit), w.Started.UTC().Format(time.DateTime+" MST"), w.Seed, w.Caught, w.Wrong)
	if w.Wrong > 0 {
		return text + " These numbers do not count."
	}
	if w.Judged < w.Of {
		text += " That was a sample: make mutants ALL=1 judges all."
	}
	switch {
	case w.Commit != commit:
		text += " That was another commit than that of the numbers."
	case strings.HasSuffix(commit, uncommitted):
		text += " The checkout had changes that are in no commit, so they may not be the same."
	}
	return text
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// Profile is where the time of a series goes: the median seconds of each part, in the order in which they end.
type Profile struct {
	Series string `json:"series"`
	Parts  []Part `json:"parts"`
	// Seconds is the median of the whole; parts that lie side by side are longer together.
	Seconds float64 `json:"seconds"`
}

// Profiles are those of all series that have parts.
func Profiles(samples []Sample) (profiles []Profile) {
	for _, series := range []string{GreenStock, GreenCold, GreenWarm, GreenEmbedded, Red} {
		var names []string
		parts := map[string][]float64{}
		for _, s := range samples {
			if s.Series != series {
				continue
			}
			for _, part := range s.Parts {
				if !slices.Contains(names, part.Name) {
					names = append(names, part.Name)
				}
				parts[part.Name] = append(parts[part.Name], part.Seconds)
			}
		}
		if len(names) == 0 {
			continue
		}
		p := Profile{Series: series, Seconds: quantile.Of(values(samples, series, wall), 50)}
		for _, name := range names {
			p.Parts = append(p.Parts, Part{Name: name, Seconds: quantile.Of(parts[name], 50)})
		}
		profiles = append(profiles, p)
	}
	return profiles
}

// Growth is what so many clusters cost that stand side by side.
type Growth struct {
	// On is what they are, such as kind.
	On       string `json:"on"`
	Clusters int    `json:"clusters"`
	// Seconds until the last one was ready, and until the last one was gone.
	Seconds       float64 `json:"seconds"`
	DeleteSeconds float64 `json:"deleteSeconds"`
	// CoreSeconds of the machine until all were ready.
	CoreSeconds float64 `json:"coreSeconds"`
	// RestSeconds is how long they were left alone then. Healthy is how many were all right after it, Bytes and
	// DiskBytes how much less memory and disk the machine had than before, and Cores how many were busy.
	RestSeconds float64 `json:"restSeconds"`
	Healthy     int     `json:"healthy"`
	Bytes       uint64  `json:"bytes"`
	DiskBytes   uint64  `json:"diskBytes"`
	Cores       float64 `json:"cores"`
}

// Fill computes what follows from the samples.
func (r *Report) Fill() {
	r.Schema = reportSchema
	r.Rows, r.Profiles = Rows(r.Samples), Profiles(r.Samples)
}

// Write keeps the report for scripts. A reader never sees half of it.
func (r *Report) Write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = maybe.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the results of the benchmark: %w", err)
	}
	return nil
}
