package course

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// manifestSchema is the version of lab.yaml and course.yaml that is read here.
const manifestSchema = 1

type manifest struct {
	Schema int    `yaml:"schema"`
	Lab    int    `yaml:"lab"`
	Name   string `yaml:"name"`
	Title  string `yaml:"title"`
	// Minutes is no int, because YAML would silently cut a fraction off.
	Minutes    float64    `yaml:"minutes"`
	Instructor Instructor `yaml:"instructor"`
	Reruns     []int      `yaml:"reruns"`
	// RerunsRequire are ids of checks of this lab that every rerun check requires.
	RerunsRequire []string `yaml:"rerunsRequire"`
	// Representative is the id of the check that stands for this lab in later ones.
	Representative string  `yaml:"representative"`
	Checks         []Check `yaml:"checks"`
}

// identifier is what ids of checks, causes and regions look like.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

func loadLab(root, dir string, number int, name string) (*Lab, error) {
	file := dir + "/" + manifestFile
	var m manifest
	if err := decodeFile(root, file, &m); err != nil {
		return nil, err
	}
	if err := m.validate(number, name); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &Lab{
		Number: number, Name: name, Title: m.Title, Dir: dir, Minutes: int(m.Minutes), Instructor: m.Instructor,
		Checks: m.Checks, Reruns: m.Reruns, RerunsRequire: m.RerunsRequire, Representative: m.Representative,
	}, nil
}

// decodeFile reads one YAML document strictly: unknown and repeated fields,
// a second document and an empty file are errors of one line.
func decodeFile(root, file string, into any) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: there is no such file", file)
	} else if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(into); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty", file)
	} else if err != nil {
		return fmt.Errorf("%s: %s", file, yamlError(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one YAML document", file)
	}
	return nil
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// yamlError makes one line of what the YAML library says: the first complaint,
// without Go's type names.
func yamlError(err error) string {
	text := err.Error()
	if typeErr, ok := errors.AsType[*yaml.TypeError](err); ok && len(typeErr.Errors) > 0 {
		text = typeErr.Errors[0]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	text = unknownField.ReplaceAllString(text, `there is no field "$1"`)
	return strings.Join(strings.Fields(text), " ")
}

func (m *manifest) validate(number int, name string) error {
	switch {
	case m.Schema != manifestSchema:
		return fmt.Errorf("schema: must be %d, is %d", manifestSchema, m.Schema)
	case m.Lab != number:
		return fmt.Errorf("lab: must be %d as in the folder's name, is %d", number, m.Lab)
	case m.Name != name:
		return fmt.Errorf("name: must be %q as in the folder's name, is %q", name, m.Name)
	case strings.TrimSpace(m.Title) == "":
		return errors.New("title: is missing")
	case len(m.Checks) == 0:
		return errors.New("checks: a lab has at least one")
	}
	if err := m.validateTeaching(); err != nil {
		return err
	}
	for i, n := range m.Reruns {
		if n < 1 || n >= number {
			return fmt.Errorf("reruns[%d]: must be an earlier lab, is %d", i, n)
		}
		if slices.Contains(m.Reruns[:i], n) {
			return fmt.Errorf("reruns[%d]: %d stands here twice", i, n)
		}
	}
	known := map[string]bool{}
	for i, c := range m.Checks {
		if err := c.validate(known); err != nil {
			return fmt.Errorf("checks[%d].%w", i, err)
		}
		known[c.ID] = true
	}
	for i, id := range m.RerunsRequire {
		if !known[id] {
			return fmt.Errorf("rerunsRequire[%d]: %q is not a check of this lab", i, id)
		}
	}
	if m.Representative != "" && !known[m.Representative] {
		return fmt.Errorf("representative: %q is not a check of this lab", m.Representative)
	}
	return nil
}

// validate looks at one check; earlier holds the ids of those above it.
func (c *Check) validate(earlier map[string]bool) error {
	switch {
	case c.ID == "":
		return errors.New("id: is missing")
	case !identifier.MatchString(c.ID):
		return fmt.Errorf("id: %q is not an id: lower case words joined by hyphens", c.ID)
	case earlier[c.ID]:
		return fmt.Errorf("id: %q stands here twice", c.ID)
	case strings.TrimSpace(c.Title) == "":
		return errors.New("title: is missing")
	}
	for i, need := range c.Needs {
		if need != NeedsPods && need != NeedsCollection {
			return fmt.Errorf("needs[%d]: %q is unknown: it is %q or %q", i, need, NeedsPods, NeedsCollection)
		}
	}
	return c.validateHints()
}

func (c *Check) validateHints() error {
	if len(c.Hints[OtherCause]) == 0 {
		return fmt.Errorf("hints: %q is missing: every check has hints for a cause that nobody thought of", OtherCause)
	}
	for _, cause := range slices.Sorted(maps.Keys(c.Hints)) {
		if !identifier.MatchString(cause) {
			return fmt.Errorf("hints: %q is not a cause: lower case words joined by hyphens", cause)
		}
		if len(c.Hints[cause]) == 0 {
			return fmt.Errorf("hints.%s: is empty", cause)
		}
		for i, hint := range c.Hints[cause] {
			if strings.TrimSpace(hint) == "" {
				return fmt.Errorf("hints.%s[%d]: is empty", cause, i)
			}
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(c.Regions)) {
		if c.Hints[cause] == nil {
			return fmt.Errorf("regions: %q has no hints", cause)
		}
	}
	return nil
}

// uniqueChecks wants every id once, and every required check above those that
// require it, in the same lab or an earlier one: nothing can go in circles.
func uniqueChecks(labs []*Lab) error {
	home := map[string]*Lab{}
	for _, lab := range labs {
		for i, c := range lab.Checks {
			for j, id := range c.Requires {
				if home[id] == nil {
					return fmt.Errorf("%s/%s: checks[%d].requires[%d]: %q is not a check above this one",
						lab.Dir, manifestFile, i, j, id)
				}
			}
			if other := home[c.ID]; other != nil {
				return fmt.Errorf("%s/%s: checks[%d].id: %q is already a check of %s",
					lab.Dir, manifestFile, i, c.ID, other.Dir)
			}
			home[c.ID] = lab
		}
	}
	return nil
}

// Instructor is what an instructor needs of a lab in the room.
type Instructor struct {
	// Say are three short sentences: what to say before everybody begins.
	Say []string `yaml:"say"`
	// Ask is the question to ask when somebody is stuck.
	Ask string `yaml:"ask"`
}

const (
	// shortestLab and longestLab bound the minutes of a lab. Whoever needs longer than two hours needs two labs.
	shortestLab, longestLab = 5, 120
	// sentences is how many an instructor says: what can be said without reading it off.
	sentences = 3
	// longestSentence is counted in characters; more nobody reads at once.
	longestSentence = 140
)

var sentenceEnd = regexp.MustCompile(`[.!?](\s|$)`)

// validateTeaching looks at what the instructor needs.
func (m *manifest) validateTeaching() error {
	switch {
	case m.Minutes == 0:
		return fmt.Errorf("minutes: is missing: how long the lab takes a learner, from %d to %d", shortestLab, longestLab)
	case m.Minutes < shortestLab || m.Minutes > longestLab || m.Minutes != math.Trunc(m.Minutes):
		return fmt.Errorf("minutes: must be a whole number from %d to %d, is %v", shortestLab, longestLab, m.Minutes)
	case len(m.Instructor.Say) != sentences:
		return fmt.Errorf("instructor.say: must be %d sentences, has %d", sentences, len(m.Instructor.Say))
	}
	for i, text := range m.Instructor.Say {
		if err := shortSentence(text); err != nil {
			return fmt.Errorf("instructor.say[%d]: %w", i, err)
		}
	}
	if err := shortSentence(m.Instructor.Ask); err != nil {
		return fmt.Errorf("instructor.ask: %w", err)
	}
	if !strings.HasSuffix(m.Instructor.Ask, "?") {
		return errors.New("instructor.ask: must be a question")
	}
	return nil
}

// shortSentence refuses what is not one short sentence on one line.
func shortSentence(text string) error {
	ends := sentenceEnd.FindAllStringIndex(text, -1)
	switch {
	case text == "" || text != strings.TrimSpace(text) || strings.Contains(text, "\n"):
		return errors.New("must be a sentence on one line")
	case len(ends) != 1 || ends[0][1] != len(text):
		return errors.New("must be one sentence, with a full stop or a question mark at its end")
	case utf8.RuneCountInString(text) > longestSentence:
		return fmt.Errorf("must have at most %d characters, has %d", longestSentence, utf8.RuneCountInString(text))
	}
	return nil
}
