package course

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lab is one step of the course, as its lab.yaml describes it.
type Lab struct {
	// Schema is the version of lab.yaml: 1.
	Schema int `yaml:"schema"`
	// Number counts from 1.
	Number int `yaml:"lab"`
	// Name is the folder's name without its number: "reconciler".
	Name string `yaml:"name"`
	// Title is one line for people.
	Title string `yaml:"title"`
	// Dir is the lab's folder, a slash path below the checkout: "labs/04-reconciler".
	Dir string `yaml:"-"`
	// Checks are in the order in which they are reported.
	Checks []Check `yaml:"checks"`
	// Setup is what its checks work with: SetupDefinition, SetupManager, SetupRole, SetupRegistry.
	Setup []string `yaml:"setup"`
}

// Opening is the check that has to hold for the others of the lab to be worth their time: the first.
func (l *Lab) Opening() Check { return l.Checks[0] }

// Has says whether its checks work with something.
func (l *Lab) Has(setup string) bool { return slices.Contains(l.Setup, setup) }

const (
	// SetupDefinition marks a lab whose checks work with the learner's definition.
	SetupDefinition = "definition"
	// SetupManager marks a lab whose checks judge a running manager.
	SetupManager = "manager"
	// SetupRole marks the lab from which on the manager has the rights of its generated role alone.
	SetupRole = "role"
	// SetupRegistry marks a lab whose managers are told of a registry outside the cluster.
	SetupRegistry = "registry"
)

// Check describes one thing that a lesson asks for.
type Check struct {
	// ID is unique in the course.
	ID string `yaml:"id"`
	// Title says what holds when the check passes.
	Title string `yaml:"title"`
	// Requires are checks above this one, in its lab or an earlier one; when one of them failed, this one is blocked.
	Requires []string `yaml:"requires"`
	// Needs are abilities that the cluster must have, or what is prepared before the suite: NeedsPods, NeedsCollection,
	// NeedsCopies.
	Needs []string `yaml:"needs"`
	// Hints are layers of hints by cause, the gentlest first. There is always the cause OtherCause.
	Hints map[string][]string `yaml:"hints"`
	// Regions names, by cause, the part of operator/ that `make hint-N` offers after the last hint. That of OtherCause is
	// for causes without one. It may be empty.
	Regions map[string]string `yaml:"regions"`
}

const (
	// NeedsPods marks a check that can only be judged where Pods really run.
	NeedsPods = "pods"
	// NeedsCollection marks a check that waits for the garbage collector, which has to know the learner's kind.
	NeedsCollection = "garbage-collection"
	// NeedsCopies marks a check that reads what the probe found out about copies of the learner's objects.
	NeedsCopies = "copies"
	// OtherCause is the key of the hints for a cause that has none of its own.
	OtherCause = "other"
)

// NeedsPods says whether the check can only be judged where Pods really run.
func (c Check) NeedsPods() bool { return slices.Contains(c.Needs, NeedsPods) }

// identifier is what ids of checks, causes and regions look like.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// validate looks at a lab that was read from the folder number-name. home has the folders of all checks above it, by id; its
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
	for i, name := range l.Setup {
		if !slices.Contains([]string{SetupDefinition, SetupManager, SetupRole, SetupRegistry}, name) {
			return fmt.Errorf("setup[%d]: there is no setup %q", i, name)
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
	for _, need := range c.Needs {
		if known := []string{NeedsPods, NeedsCollection, NeedsCopies}; !slices.Contains(known, need) {
			return fmt.Errorf("needs: %q is unknown: it is one of %s", need, strings.Join(known, ", "))
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(c.Hints)) {
		empty := func(hint string) bool { return strings.TrimSpace(hint) == "" }
		switch hints := c.Hints[cause]; {
		case !identifier.MatchString(cause):
			return fmt.Errorf("hints: %q is not a cause: lower case words joined by hyphens", cause)
		case len(hints) == 0 || slices.ContainsFunc(hints, empty):
			return fmt.Errorf("hints.%s: is empty", cause)
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(c.Regions)) {
		if c.Hints[cause] == nil {
			return fmt.Errorf("regions: %q has no hints", cause)
		}
	}
	return nil
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// decodeFile reads one YAML document strictly: unknown and repeated fields, a second document and an empty file are errors
// of one line.
func decodeFile(root, file string, into any) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("load course: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err = dec.Decode(into)
	if typeErr, ok := errors.AsType[*yaml.TypeError](err); ok {
		err = errors.New(typeErr.Errors[0])
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the file is empty", file)
	case err != nil:
		text := unknownField.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), `there is no field "$1"`)
		return fmt.Errorf("%s: %s", file, strings.Join(strings.Fields(text), " "))
	case dec.Decode(new(yaml.Node)) != io.EOF: //nolint:errorlint // the decoder returns it as it is
		return fmt.Errorf("%s: more than one YAML document", file)
	}
	return nil
}
