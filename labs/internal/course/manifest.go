package course

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Lab is one step of the course, as its lab.yaml describes it.
type Lab struct {
	Number int      `yaml:"-"`      // counts from 1; a task of the CKA practice has minus its number
	Dir    string   `yaml:"-"`      // a slash path below the checkout: "labs/04-reconciler"
	Title  string   `yaml:"title"`  // one line for people
	Checks []Check  `yaml:"checks"` // in the order in which they are reported
	Setup  []string `yaml:"setup"`  // what its checks work with
}

// Name is that of a lab, such as "lab 4", or of a task of the CKA practice, such as "cka-3", whose number is below zero.
func Name(number int) string {
	if number < 0 {
		return fmt.Sprint("cka", number)
	}
	return fmt.Sprint("lab ", number)
}

// What a lab may have as its Setup.
const (
	SetupDefinition = "definition" // the learner's CustomResourceDefinition
	SetupManager    = "manager"    // a running manager
	SetupRole       = "role"       // from this lab on, the manager has the rights of its generated role alone
	SetupRegistry   = "registry"   // managers get the address of a registry outside the cluster
	SetupWebhooks   = "webhooks"   // managers serve their webhooks
)

// Opening is the first check of the lab. When it fails, the others are given up.
func (l *Lab) Opening() Check { return l.Checks[0] }

// Has says whether the lab's Setup has something, such as [SetupManager].
func (l *Lab) Has(setup string) bool { return slices.Contains(l.Setup, setup) }

// Check describes one thing that a lesson asks for.
type Check struct {
	ID    string `yaml:"id"`    // unique in the course
	Title string `yaml:"title"` // what holds when the check passes
	// Requires are checks above this one, in its lab or an earlier one; when one of them failed, this one is blocked.
	Requires []string `yaml:"requires"`
	// Needs are abilities that the cluster must have, or results that are prepared before the suite.
	Needs []string `yaml:"needs"`
	// Hints are layers of hints by cause, the gentlest first. There is always the cause [finding.CauseOther].
	Hints map[string][]string `yaml:"hints"`
	// Regions names, by cause, the region of operator/ that a failure is about, which has a place in the workspace: see
	// [Course.Place]. That of [finding.CauseOther] is for causes without one. It may be empty.
	Regions map[string]string `yaml:"regions"`
}

// What a check may have in its Needs.
const (
	NeedsPods       = "pods"               // Pods that really run
	NeedsCollection = "garbage-collection" // a garbage collector that knows the learner's kind
	NeedsImage      = "image"              // the learner's program as an image on the nodes
	NeedsCopies     = "copies"             // what the probe found out about copies of the learner's objects
	NeedsLoopback   = "loopback"           // an API server that reaches a program of this machine: one in a container does not
)

// NeedsPods says whether the check can only be judged where Pods really run.
func (c Check) NeedsPods() bool { return slices.Contains(c.Needs, NeedsPods) }

// RunsOn says whether a cluster can judge the check: one where Pods really run, which is in containers, or one that is processes.
func (c Check) RunsOn(realPods bool) bool {
	return !slices.Contains(c.Needs, map[bool]string{true: NeedsLoopback, false: NeedsPods}[realPods])
}

// validate refuses mistakes in the manifest. home has the folder of each check of the labs before, by id; the lab's own are added.
func (l *Lab) validate(home map[string]string) error {
	if len(l.Checks) == 0 {
		return errors.New("checks: a lab has at least one")
	}
	for i, c := range l.Checks {
		err := cmp.Or(known("requires", c.Requires, slices.Sorted(maps.Keys(home))...), // those above, so that nothing goes in circles
			known("needs", c.Needs, NeedsPods, NeedsCollection, NeedsImage, NeedsCopies, NeedsLoopback))
		switch {
		case err != nil:
		case home[c.ID] != "":
			err = fmt.Errorf("id: %q is already a check of %s", c.ID, home[c.ID])
		case len(c.Hints[finding.CauseOther]) == 0:
			err = fmt.Errorf("hints: %q is missing: every check has hints for a cause without hints of its own", finding.CauseOther)
		}
		if err != nil {
			return fmt.Errorf("checks[%d].%w", i, err)
		}
		home[c.ID] = l.Dir
	}
	return known("setup", l.Setup, SetupDefinition, SetupManager, SetupRole, SetupRegistry, SetupWebhooks)
}

// known refuses names of a field that are not among all.
func known(field string, names []string, all ...string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("%s: %q is none of %s", field, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// Decode reads a YAML file of the checkout strictly: unknown and repeated fields are errors, of one line. file is a slash path below root.
func Decode(root, file string, into any) error {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("load course: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) { // the file may be empty
		return fmt.Errorf("%s: %s", file, strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}
