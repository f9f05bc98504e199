package verdict

import "time"

// Part is a part of a run that takes time worth knowing.
type Part string

// The parts of a run. Those before the checks run side by side, as far as they do not need each other.
const (
	// PartBuild compiles the learner's manager.
	PartBuild Part = "build"
	// PartTools compiles the suite and what it needs, where that was not done before.
	PartTools Part = "tools"
	// PartCreate makes the cluster, where the run has none yet.
	PartCreate Part = "create"
	// PartClaim takes a cluster from a pool instead.
	PartClaim Part = "claim"
	// PartDefinition installs the learner's CRD.
	PartDefinition Part = "definition"
	// PartOperand loads the image of memcached into nodes that lack it.
	PartOperand Part = "operand"
	// PartChecks runs the suite.
	PartChecks Part = "checks"
	// PartDelete takes the run's own cluster away, after the answer.
	PartDelete Part = "delete"
)

// timed starts a clock. What it returns stops it and tells [Judge.Took].
func (r *run) timed(part Part) (done func()) {
	began := time.Now()
	return func() {
		if r.Took != nil {
			r.Took(part, time.Since(began))
		}
	}
}
