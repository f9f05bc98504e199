package components

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Source is what programs are compiled from.
type Source struct {
	// Dir is the folder of a module, as a slash path below the checkout.
	Dir string
	// Packages make the programs.
	Packages []string
}

// Sources are what the named programs are compiled from, one for each module, so that its dependencies can be
// downloaded ahead.
func Sources(names ...string) ([]Source, error) {
	if unknown := without(names, Names()); len(unknown) > 0 {
		return nil, fmt.Errorf("look up sources: no component is called %s", strings.Join(unknown, ", "))
	}
	var sources []Source
	for _, m := range modules() {
		s := Source{Dir: path.Join("clusters/components", m.dir)}
		for _, name := range names {
			if pkg, ok := m.packages[name]; ok {
				s.Packages = append(s.Packages, pkg)
			}
		}
		if len(s.Packages) > 0 {
			slices.Sort(s.Packages)
			sources = append(sources, s)
		}
	}
	return sources, nil
}
