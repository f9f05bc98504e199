package borrow

import (
	"time"

	"github.com/example/operator-lab/clusters"
)

// Path is where claims are below the address of the room's server. Each has the path of its own name below that: POST
// asks for a cluster and how far that is, DELETE gives it back; what follows the name is about a cluster that is lent.
const Path = "/api/v1/lending"

// What follows the name of a claim.
const (
	// BeatPath says that the borrower is still there.
	BeatPath = "/beat"
	// NodesPath tells of the cluster's machines.
	NodesPath = "/nodes"
	// ControllersPath starts the controller manager anew.
	ControllersPath = "/controllers"
)

// SeenParameter of a claim is the mark of the answer that is known.
const SeenParameter = "seen"

// RestartTime is what a restart of the controllers may take: more than the providers give it.
const RestartTime = 40 * time.Second

// BeatPeriod is how often a borrower says that they are still there.
const BeatPeriod = 5 * time.Second

// PollTime is how long a claim is kept waiting for news before it is answered that there are none. It is shorter
// than what the server has for an answer.
const PollTime = 10 * time.Second

// Loan is a cluster that is lent.
type Loan struct {
	// Cluster describes it. Its name is that on the room's machine, and the path of its kubeconfig is not told.
	Cluster clusters.Cluster `json:"cluster"`
	// Kubeconfig opens the cluster, and is for the borrower alone.
	Kubeconfig []byte `json:"kubeconfig"`
}

// String names the cluster, and shows no key.
func (l Loan) String() string { return l.Cluster.Name }

// Answer is how far a claim has come.
type Answer struct {
	// Loan is the cluster; nil while there is none.
	Loan *Loan `json:"loan,omitempty"`
	// Place is the learner's in the queue, 1 for who is next, and 0 for somebody who waits no more: their cluster is
	// there, or is being made ready.
	Place int `json:"place"`
	// Held says that another check of the learner still has a cluster. This one waits for its end.
	Held bool `json:"held,omitempty"`
	// Mark tells this answer from those that say something else.
	Mark string `json:"mark"`
}

// EndedError says that a claim has come to its end, and why.
type EndedError struct{ Why string }

func (e *EndedError) Error() string { return e.Why }
