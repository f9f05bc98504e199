package bench

import (
	"fmt"
	"slices"

	"github.com/example/operator-lab/labs/internal/quantile"
)

// The series that samples belong to.
const (
	GreenStock    = "green verdict, stock"
	GreenWarm     = "green verdict, warm"
	GreenCold     = "green verdict, cold"
	GreenEmbedded = "green verdict, embedded"
	ReadyEmbedded = "ready, embedded"
	ReadyEnvtest  = "ready, envtest"
	Claim         = "claim"
	Red           = "red verdict, warm"
	Create        = "create"
	CreateStock   = "create, stock"
	Idle          = "idle"
	IdleStock     = "idle, stock"
)

// unit is how numbers are written.
type unit struct {
	suffix string
	scale  float64
	digits int
}

var (
	seconds     = unit{"s", 1, 2}
	coreSeconds = unit{"core-s", 1, 1}
	megabytes   = unit{"MiB", 1.0 / (1 << 20), 0}
)

// format writes a number with its unit. What is too small for the unit's digits gets three of its own.
func (u unit) format(n float64) string {
	n *= u.scale
	digits := u.digits
	if n != 0 && n < 0.1 {
		digits = 3
	}
	return fmt.Sprintf("%.*f %s", digits, n, u.suffix)
}

// quantity is what a figure takes of a sample.
type quantity struct {
	unit unit
	of   func(Sample) float64
}

var (
	wall   = quantity{seconds, func(s Sample) float64 { return s.Seconds }}
	cores  = quantity{coreSeconds, func(s Sample) float64 { return s.CoreSeconds }}
	memory = quantity{megabytes, func(s Sample) float64 { return float64(s.Bytes) }}
)

// scaffolded is how many seconds the waits of scaffolded suites take before they give up on a wrong answer.
const scaffolded = 120

// figure is a line of the table: what we promise, and against what.
type figure struct {
	title, against string
	quantity       quantity
	// ours is compared by its median, or by its 95th percentile; theirs by its median. Without a series, theirs is
	// the constant.
	ours     string
	by       int
	theirs   string
	constant float64
	// target and limit are ratios to theirs, or, with a constant, values of ours. Beyond target is a promise that is
	// not kept; beyond limit something is broken, however busy the machine may be.
	target, limit float64
}

// figures are the table of promises.
var figures = []figure{{
	title: "green verdict of lab 4, warm pool", against: "stock: create, load, go test, delete",
	quantity: wall, ours: GreenWarm, by: 50, theirs: GreenStock, target: 0.15, limit: 0.4,
}, {
	title: "green verdict of lab 4, cold", against: "the same",
	quantity: wall, ours: GreenCold, by: 50, theirs: GreenStock, target: 0.5, limit: 0.85,
}, {
	title: "green verdict of lab 4, embedded, cold", against: "the same",
	quantity: wall, ours: GreenEmbedded, by: 50, theirs: GreenStock, target: 0.2, limit: 0.5,
}, {
	title: "embedded control plane ready", against: "envtest and the same controllers",
	quantity: wall, ours: ReadyEmbedded, by: 50, theirs: ReadyEnvtest, target: 0.5, limit: 0.9,
}, {
	title: "claim from the pool, p95", against: "cold create, median",
	quantity: wall, ours: Claim, by: 95, theirs: Create, target: 0.02, limit: 0.2,
}, {
	title: "red verdict of a wrong answer to lab 4, warm, p95", against: "the 120 s of scaffolded suites",
	quantity: wall, ours: Red, by: 95, constant: scaffolded, target: 10, limit: 30,
}, {
	title: "core-seconds for one fresh cluster", against: "stock kind",
	quantity: cores, ours: Create, by: 50, theirs: CreateStock, target: 0.6, limit: 0.95,
}, {
	title: "memory of one idle cluster", against: "stock kind",
	quantity: memory, ours: Idle, by: 50, theirs: IdleStock, target: 0.75, limit: 1.05,
}}

// The results of a row.
const (
	Met         = "met"
	Missed      = "missed"
	NotMeasured = "not measured"
)

// Row is a figure that was measured, or should have been.
type Row struct {
	Figure  string `json:"figure"`
	Against string `json:"against"`
	Unit    string `json:"unit"`
	Ours    Spread `json:"ours"`
	Theirs  Spread `json:"theirs"`
	// Cores are the core-seconds of both sides, where the row is not about them itself.
	Cores       Spread `json:"coreSeconds"`
	TheirsCores Spread `json:"theirsCoreSeconds"`
	// Ratio is that of the value that counts to theirs.
	Ratio float64 `json:"ratio"`
	// Target and Limit bound the ratio, or, when Absolute, the value itself.
	Target   float64 `json:"target"`
	Limit    float64 `json:"limit"`
	Absolute bool    `json:"absolute,omitempty"`
	Result   string  `json:"result"`
	// Notes are those of the samples, each once.
	Notes []string `json:"notes,omitempty"`

	unit unit
	by   int
}

// Spread is where the values of a series lie. With fewer than 20 of them, P95 is the largest.
type Spread struct {
	Count  int     `json:"n"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
}

func spread(values []float64) Spread {
	return Spread{Count: len(values), Median: quantile.Of(values, 50), P95: quantile.Of(values, 95)}
}

// at is the median or the 95th percentile.
func (s Spread) at(p int) float64 {
	if p == 95 {
		return s.P95
	}
	return s.Median
}

// Rows are the table of promises, filled from samples.
func Rows(samples []Sample) []Row {
	var rows []Row
	for _, f := range figures {
		rows = append(rows, f.row(samples))
	}
	return rows
}

func (f figure) row(samples []Sample) Row {
	r := Row{
		Figure: f.title, Against: f.against, Unit: f.quantity.unit.suffix, Target: f.target, Limit: f.limit,
		Absolute: f.constant > 0, Result: NotMeasured, unit: f.quantity.unit, by: f.by,
		Ours: spread(values(samples, f.ours, f.quantity)), Theirs: spread(values(samples, f.theirs, f.quantity)),
		Notes: notes(samples, f.ours, f.theirs),
	}
	if f.quantity.unit == seconds {
		r.Cores, r.TheirsCores = spread(values(samples, f.ours, cores)), spread(values(samples, f.theirs, cores))
	}
	if f.constant > 0 {
		r.Theirs = Spread{Count: r.Ours.Count, Median: f.constant, P95: f.constant}
	}
	if r.Ours.Count == 0 || r.Theirs.Count == 0 {
		return r
	}
	r.Ratio = r.Ours.at(f.by) / r.Theirs.Median
	if r.Result = Missed; r.Value() <= f.target {
		r.Result = Met
	}
	return r
}

// Value is what target and limit bound.
func (r Row) Value() float64 {
	if r.Absolute {
		return r.Ours.at(r.by)
	}
	return r.Ratio
}

// values are those of a series. What is 0 was not known.
func values(samples []Sample, series string, q quantity) (values []float64) {
	for _, s := range samples {
		if n := q.of(s); s.Series == series && n > 0 {
			values = append(values, n)
		}
	}
	return values
}

func notes(samples []Sample, series ...string) (notes []string) {
	for _, s := range samples {
		if s.Note != "" && slices.Contains(series, s.Series) && !slices.Contains(notes, s.Note) {
			notes = append(notes, s.Note)
		}
	}
	return notes
}

// Broken says about each row that is beyond its limit that it is, in one line each. It is what a short run can tell:
// its few samples are too few for targets.
func Broken(rows []Row) (lines []string) {
	for _, r := range rows {
		if r.Result == NotMeasured || r.Value() <= r.Limit {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s is beyond %s, whatever the machine is busy with",
			r.Figure, r.bound(r.Value()), r.bound(r.Limit)))
	}
	return lines
}

// bound writes a value of the kind that target and limit are.
func (r Row) bound(n float64) string {
	if r.Absolute {
		return r.unit.format(n)
	}
	return fmt.Sprintf("%.3g ×", n)
}
