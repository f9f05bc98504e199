package clusters

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Provider makes clusters and takes them away. All its methods may be called from several goroutines, for different
// clusters. A method returns [errors.ErrUnsupported] for what the provider cannot do.
type Provider interface {
	// Identity is a short word such as "kind/docker". Several providers can exist on one machine; a cluster is deleted by
	// one of the identity that made it, because no other could see whether it is gone.
	Identity() string
	// Create makes a cluster that nobody used before and returns when it is ready: every node Ready, CoreDNS available,
	// the default ServiceAccount there. It fails with [ErrExists] when somebody has a cluster of that name, and leaves
	// that alone. When it fails, or ctx ends, nothing of its own is left.
	Create(ctx context.Context, name string, spec Spec) (*Cluster, error)
	// Delete removes the cluster that Create made under exactly that name, and its kubeconfig, and returns nil only when
	// it saw that it is gone. Deleting a cluster that does not exist is no error. One that somebody else made stays.
	Delete(ctx context.Context, name string) error
	// List names the clusters that the provider sees. For kind these are all on the engine, also those of others.
	List(ctx context.Context) ([]string, error)
	// LoadImageArchive brings the images of a docker-archive tar into every node.
	LoadImageArchive(ctx context.Context, name, archive string) error
	// SaveImage writes an image of the container engine to a docker-archive tar.
	SaveImage(ctx context.Context, image, archive string) error
	// CollectLogs writes what the nodes logged into dir, which it creates.
	CollectLogs(ctx context.Context, name, dir string) error
	// Nodes looks at the machines of a cluster without the help of its API server. Those that are gone are not among
	// them.
	Nodes(ctx context.Context, name string) ([]Node, error)
	// Keep lets a cluster that this process made outlive it.
	Keep(ctx context.Context, name string) error
	// Pause stops everything in the cluster where it is, at once or a moment later, so that it takes no processor time.
	// Resume lets it go on.
	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	// Commands are for a person at a shell: what lets a paused cluster go on, and what removes it.
	Commands(name string) (resume, remove string)
	// RestartControllers starts the controller manager anew. It looks for new kinds every 30 s only, and until then its
	// garbage collector does not know whose owner a custom resource is (restMapper.Reset in the start of its
	// controllers). A new one knows at once.
	RestartControllers(ctx context.Context, name string) error
}

// Spec says what kind of cluster is wanted. Its zero value is one node, with the name lab-test-<8 hex>.
type Spec struct {
	// Name is the cluster's name; "" draws one with [NewName]. With a name of your own, [ErrExists] is possible.
	Name string
	// Label says what the cluster is for, in up to 20 lower case letters, digits and dashes; "" means "test". It is part
	// of a drawn name, and stands in the [Record].
	Label string
	// Keep lets the cluster stay after this process, until it is deleted by name.
	Keep bool
	// Image is the image of every node. "" means the one that Config has, or [DefaultNodeImage]. It must be on the
	// machine, unless the manager has [WithPull].
	Image string
	// Workers is the number of nodes beside the control plane. A node image that nodeimage.Build made takes none.
	Workers int
	// Config is a kind configuration in place of our own (kind.yaml).
	Config []byte
	// Prepare, if it is not nil, is done to the cluster before Create returns, such as loading an image. When it fails
	// the cluster is removed.
	Prepare func(ctx context.Context, c *Cluster) error
	// APIServerAddress is the IPv4 address of this machine on which the API server of an embedded cluster answers, and which
	// its certificate names. "" means 127.0.0.1, which nobody else can reach. On another one the admin is not trusted: the API
	// server, which is a process of this machine, calls nobody: no webhooks, no aggregated API servers, no proxies to nodes
	// and Services. kind refuses another one.
	APIServerAddress string
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
}

// RESTConfig is the configuration of a client that is the cluster's admin.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of cluster %s: %w", c.Name, err)
	}
	return config, nil
}

// Node is one machine of a cluster, as the provider sees it.
type Node struct {
	Name string
	// Running says whether the node's container or process is at work; State says what it is otherwise, in the words of
	// the engine ("paused", "exited").
	Running bool
	State   string
	// FreeDisk is the space in bytes that is left for images and Pods: 0 when it is not known, 1 when nothing is left.
	FreeDisk uint64
	// Stopped names the services that should be at work on the node and are not, such as its kubelet.
	Stopped []string
}

// These errors say what a [*Problem] is about. The first two are also those of a name that is taken, and of an image.
var (
	// ErrExists says that somebody has a cluster of that name.
	ErrExists = errors.New("a cluster of that name exists")
	// ErrImageMissing says that the node image is not on this machine.
	ErrImageMissing = errors.New("the node image is not on this machine")
	// ErrNoEngine says that no container engine answers.
	ErrNoEngine = errors.New("no container engine answers")
	// ErrBroken says that one cluster is broken, and not the machine. A new one may work.
	ErrBroken = errors.New("the cluster is broken")
)

// Problem is something that is wrong with the machine, its container engine, or one cluster, and not with the code that
// is tested there.
type Problem struct {
	// What is wrong, as a short sentence without a full stop.
	What string
	// Reason is one of the errors of this package, or nil. [errors.Is] finds it.
	Reason error
	// Fix is the command that fixes it, "" where the library knows none.
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

// Is says whether target is the problem's reason.
func (p *Problem) Is(target error) bool { return p.Reason != nil && p.Reason == target }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// problem makes err a *Problem, unless it is one already, or the caller has cancelled.
func problem(err, reason error, what string, args ...any) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	what = fmt.Sprintf(what, args...)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &Problem{What: what, Reason: reason, Err: err}
}
