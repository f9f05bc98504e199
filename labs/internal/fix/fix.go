// Package fix names the commands of this checkout that fix what the packages of clusters find wrong.
package fix

import (
	"errors"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
)

// The commands.
const (
	Setup     = "make setup"      // brings up a container engine
	NodeImage = "make node-image" // builds the image of a cluster's nodes
	Down      = "make down"       // takes clusters away; the next command makes a new one
	Doctor    = "make doctor"     // looks for the cause
)

// Command is what fixes the problem.
func Command(p *clusters.Problem) string {
	switch {
	case p.Fix != "":
		return p.Fix
	case errors.Is(p, clusters.ErrNoEngine):
		return Setup
	case errors.Is(p, clusters.ErrImageMissing):
		return NodeImage
	case errors.Is(p, clusters.ErrBroken):
		return Down
	default:
		return Doctor
	}
}

// Commands are those that the doctor names.
func Commands() doctor.Commands {
	return doctor.Commands{Setup: Setup, NodeImage: NodeImage, Down: Down, Instead: "set CLUSTER=embedded"}
}
