// Package clusters makes Kubernetes clusters and takes them away again.
//
// A [Provider] knows how: [Kind] is the reference. [Owned] adds memory to a
// provider: it writes down which process made which cluster before the cluster
// exists, so that whatever a dead process left can be found and removed, and
// nothing else ever is.
//
// The package knows nothing of labs. It returns errors; what is wrong with the
// machine, and never with the person at it, is a [*Problem].
package clusters

import (
	"context"
	"errors"
	"fmt"
)

// Provider makes clusters and takes them away. All its methods may be called
// from several goroutines, for different clusters.
//
//  1. Create makes a cluster that nobody used before and returns when it is
//     ready: every node Ready, CoreDNS available, the default ServiceAccount
//     there. It fails with [ErrExists] when somebody has a cluster of that name,
//     and leaves that alone. When it fails, or ctx ends, nothing of its own is left.
//  2. Delete removes the cluster that Create made under exactly that name, and its
//     kubeconfig, and returns nil only when it saw that it is gone. Deleting a
//     cluster that does not exist is no error. One that somebody else made stays.
//  3. List names all clusters of this kind on the machine, also those that
//     others made. Compare names for equality.
//  4. LoadImageArchive brings the images of a docker-archive tar into every
//     node.
//  5. CollectLogs writes what the nodes logged into dir, which it creates.
type Provider interface {
	Create(ctx context.Context, name string, spec Spec) (*Cluster, error)
	Delete(ctx context.Context, name string) error
	List(ctx context.Context) ([]string, error)
	LoadImageArchive(ctx context.Context, name, archive string) error
	CollectLogs(ctx context.Context, name, dir string) error
}

// Spec says what kind of cluster is wanted. Its zero value is one node of the
// lab configuration.
type Spec struct {
	// NodeImage is the image of every node. Empty means the one that Config has, or
	// the provider's default, for kind [DefaultNodeImage]. It must be on the
	// machine: no provider pulls.
	NodeImage string
	// Workers is the number of nodes beside the control plane. A node image that nodeimage.Build made takes none.
	Workers int
	// Config replaces the configuration of a lab cluster (kind.yaml), in the
	// provider's own format.
	Config []byte
	// Prepare, if it is not nil, is done to the cluster before [Owned] counts it as
	// made, such as loading an image. When it fails the cluster is removed.
	Prepare func(ctx context.Context, c *Cluster) error
	// APIServerAddress is the IPv4 address of this machine on which the API server
	// answers, and which its certificate names. Empty means 127.0.0.1, which nobody
	// else can reach. Another one means ForOthers, too.
	APIServerAddress string
	// ForOthers says that the cluster's admin is somebody else than who runs this machine. An embedded API server, which
	// is a process of this machine, calls nobody then: no webhooks, no aggregated API servers, no proxies to nodes and
	// Services. Other providers have no use for it.
	ForOthers bool
}

// Cluster describes a cluster that is ready.
type Cluster struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// Kubeconfig is the absolute path of a file of this cluster alone, mode 0600.
	Kubeconfig string `json:"kubeconfig"`
	// Version is that of the API server, such as v1.36.3.
	Version   string `json:"version"`
	NodeImage string `json:"nodeImage,omitempty"`
	Nodes     int    `json:"nodes"`
	// RealPods says whether Pods run containers.
	RealPods bool `json:"realPods"`
	// Logs says whether CollectLogs has anything to collect.
	Logs bool `json:"logs"`
}

// ErrExists says that a name is taken.
var ErrExists = errors.New("a cluster of that name exists")

// Problem is something that is wrong with the machine or its container engine,
// never with the learner.
type Problem struct {
	// What is wrong, as a short sentence without a full stop.
	What string
	// Fix is the command that fixes it, or "" when there is none.
	Fix string
	// Err is the cause, or nil.
	Err error
}

// Error is "what: cause (fix: command)".
func (p *Problem) Error() string {
	if p.Fix == "" {
		return p.Finding()
	}
	return fmt.Sprintf("%s (fix: %s)", p.Finding(), p.Fix)
}

// Finding is "what: cause", without the command.
func (p *Problem) Finding() string {
	if p.Err == nil {
		return p.What
	}
	return fmt.Sprintf("%s: %v", p.What, p.Err)
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// problem makes err a *Problem. What is one already stays as it is, so that the
// most exact finding and its command reach the reader. A caller who cancelled has
// no problem.
func problem(err error, fix, what string, args ...any) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	what = fmt.Sprintf(what, args...)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &Problem{What: what, Fix: fix, Err: err}
}

// Node is one machine of a cluster, as the provider sees it.
type Node struct {
	Name string
	// Running says whether the node's container or process is at work; State
	// says what it is otherwise, in the words of the engine ("paused", "exited").
	Running bool
	State   string
	// FreeDisk is the space in bytes that is left for images and Pods: 0 when it is
	// not known, 1 when nothing is left.
	FreeDisk uint64
	// Stopped names the services that should be at work on the node and are not,
	// such as its kubelet.
	Stopped []string
	// Killed counts the programs that the node's kernel, which it may share with
	// the whole machine, has killed for want of memory.
	Killed uint64
	// Starts counts how often each service was started, where the provider knows; nil
	// where it does not.
	Starts map[string]int
}

// LowOnDisk says whether so little disk space is left that the node cannot go on. That is a
// matter of its machine: a new cluster would have no more.
func (n Node) LowOnDisk() bool { return n.FreeDisk > 0 && n.FreeDisk < enoughDisk }

// NodeInspector is a provider that can look at the machines of its clusters
// without the help of the API server. Those that are gone, or on their way out, are
// not among them. errors.ErrUnsupported says that it cannot after all.
type NodeInspector interface {
	Nodes(ctx context.Context, name string) ([]Node, error)
}

// Identifier is a provider of which several can exist on one machine, for
// example kind on two engines. Clusters that were made under another identity
// are never deleted: the provider could not see whether they are gone.
type Identifier interface {
	// Identity is a short word like "kind/docker".
	Identity() string
}

// Keeper is a provider whose clusters would end with the process that made them.
type Keeper interface {
	// Keep lets a cluster that this process made outlive it. It returns the number
	// of the process that answers for the cluster from now on.
	Keep(ctx context.Context, name string) (pid int, err error)
}

// ImageSaver is a provider that can write an image of its container engine to a
// file that LoadImageArchive takes.
type ImageSaver interface {
	SaveImage(ctx context.Context, image, archive string) error
}

// ControllerRestarter is a provider that can start the controller manager of a cluster anew. It looks for new
// kinds every 30 s only (restMapper.Reset in kube-controller-manager's start of its controllers), and until
// then its garbage collector does not know whose owner a custom resource is. A new one knows at once.
type ControllerRestarter interface {
	// RestartControllers ends the controller manager and waits until another one runs.
	RestartControllers(ctx context.Context, name string) error
}

// Pauser is a provider whose clusters can wait without taking any processor time.
type Pauser interface {
	// Pause stops everything in the cluster where it is.
	Pause(ctx context.Context, name string) error
	// Resume lets it go on, as if no time had passed.
	Resume(ctx context.Context, name string) error
}
