package verdict

import (
	"slices"

	"github.com/example/operator-lab/labs/internal/course"
)

// ownFirst puts a lab that runs others again before those, and has their checks require what it names: a
// right that is missing explains whatever fails without it, and not the other way round.
func ownFirst(labs []*course.Lab) []*course.Lab {
	var own, others []*course.Lab
	needs := map[int][]string{}
	for _, lab := range labs {
		if len(lab.RerunsRequire) == 0 {
			others = append(others, lab)
			continue
		}
		own = append(own, lab)
		for _, n := range lab.Reruns {
			needs[n] = append(needs[n], lab.RerunsRequire...)
		}
	}
	for i, lab := range others {
		others[i] = requiring(lab, needs[lab.Number])
	}
	return append(own, others...)
}

// requiring is the lab with more requirements for each of its checks.
func requiring(lab *course.Lab, needs []string) *course.Lab {
	if len(needs) == 0 {
		return lab
	}
	changed := *lab
	changed.Checks = slices.Clone(lab.Checks)
	for i, c := range changed.Checks {
		changed.Checks[i].Requires = slices.Concat(needs, c.Requires)
	}
	return &changed
}
