package course

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lab is one step of the course, as its lab.yaml describes it.
type Lab struct {
	Schema int      `yaml:"schema"` // the version of lab.yaml: 1
	Number int      `yaml:"lab"`    // counts from 1
	Name   string   `yaml:"name"`   // the folder's name without its number: "reconciler"
	Title  string   `yaml:"title"`  // one line for people
	Dir    string   `yaml:"-"`      // a slash path below the checkout: "labs/04-reconciler"
	Checks []Check  `yaml:"checks"` // in the order in which they are reported
	Setup  []string `yaml:"setup"`  // what its checks work with
}

// What a lab may have as its Setup.
const (
	SetupDefinition = "definition" // the learner's definition
	SetupManager    = "manager"    // a running manager
	SetupRole       = "role"       // from this lab on, the manager has the rights of its generated role alone
	SetupRegistry   = "registry"   // managers are told of a registry outside the cluster
)

// Opening is the check that has to hold for the others of the lab to be worth their time: the first.
func (l *Lab) Opening() Check { return l.Checks[0] }

// Has says whether its checks work with something.
func (l *Lab) Has(setup string) bool { return slices.Contains(l.Setup, setup) }

// Check describes one thing that a lesson asks for.
type Check struct {
	// ID is unique in the course.
	ID string `yaml:"id"`
	// Title says what holds when the check passes.
	Title string `yaml:"title"`
	// Requires are checks above this one, in its lab or an earlier one; when one of them failed, this one is blocked.
	Requires []string `yaml:"requires"`
	// Needs are abilities that the cluster must have, or what is prepared before the suite.
	Needs []string `yaml:"needs"`
	// Hints are layers of hints by cause, the gentlest first. There is always the cause OtherCause.
	Hints map[string][]string `yaml:"hints"`
	// Regions names, by cause, the part of operator/ that `make hint-N` offers after the last hint. That of OtherCause is
	// for causes without one. It may be empty.
	Regions map[string]string `yaml:"regions"`
}

// What a check may have in its Needs.
const (
	NeedsPods       = "pods"               // Pods that really run
	NeedsCollection = "garbage-collection" // a garbage collector that knows the learner's kind
	NeedsCopies     = "copies"             // what the probe found out about copies of the learner's objects
)

// OtherCause is the key of the hints for a cause that has none of its own.
const OtherCause = "other"

// NeedsPods says whether the check can only be judged where Pods really run.
func (c Check) NeedsPods() bool { return slices.Contains(c.Needs, NeedsPods) }

// identifier is what ids of checks, causes and regions look like.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// validate looks at a lab that was read from the folder number-name. home has the folder of each check above it, by id; the lab's
// own are added.
func (l *Lab) validate(number int, name string, home map[string]string) error {
	switch {
	case l.Schema != 1:
		return fmt.Errorf("schema: must be 1, is %d", l.Schema)
	case l.Number != number || l.Name != name:
		return fmt.Errorf("lab, name: must be %d and %q as in the folder's name", number, name)
	case strings.TrimSpace(l.Title) == "":
		return errors.New("title: is missing")
	case len(l.Checks) == 0:
		return errors.New("checks: a lab has at least one")
	}
	for i, c := range l.Checks {
		if other, taken := home[c.ID]; taken {
			return fmt.Errorf("checks[%d].id: %q is already a check of %s", i, c.ID, other)
		}
		if err := c.validate(home); err != nil {
			return fmt.Errorf("checks[%d].%w", i, err)
		}
		home[c.ID] = l.Dir
	}
	return known("setup", l.Setup, SetupDefinition, SetupManager, SetupRole, SetupRegistry)
}

// known refuses names that mean nothing.
func known(field string, names []string, all ...string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("%s: %q is none of %s", field, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// validate looks at one check; earlier has the ids of those above it, so that nothing can go in circles.
func (c *Check) validate(earlier map[string]string) error {
	switch {
	case !identifier.MatchString(c.ID):
		return fmt.Errorf("id: %q is not an id: lower case words joined by hyphens", c.ID)
	case strings.TrimSpace(c.Title) == "":
		return errors.New("title: is missing")
	case len(c.Hints[OtherCause]) == 0:
		return fmt.Errorf("hints: %q is missing: every check has hints for a cause without hints of its own", OtherCause)
	}
	for _, id := range c.Requires {
		if earlier[id] == "" {
			return fmt.Errorf("requires: %q is not a check above this one", id)
		}
	}
	for cause, hints := range c.Hints {
		empty := func(hint string) bool { return strings.TrimSpace(hint) == "" }
		switch {
		case !identifier.MatchString(cause):
			return fmt.Errorf("hints: %q is not a cause: lower case words joined by hyphens", cause)
		case len(hints) == 0 || slices.ContainsFunc(hints, empty):
			return fmt.Errorf("hints.%s: is empty", cause)
		}
	}
	for cause := range c.Regions {
		if c.Hints[cause] == nil {
			return fmt.Errorf("regions: %q has no hints", cause)
		}
	}
	return known("needs", c.Needs, NeedsPods, NeedsCollection, NeedsCopies)
}

// decodeFile reads a YAML document strictly: unknown and repeated fields are errors, of one line.
func decodeFile(root, file string, into any) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("load course: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) { // an empty file lacks its schema
		return fmt.Errorf("%s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}
