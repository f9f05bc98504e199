package apiproxy

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// The words of a request that pass.
var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
	// subresources leave out what connects to somewhere (exec, proxy, portforward), what makes credentials (token), and
	// what adds containers to Pods.
	subresources = []string{"", "status", "scale", "finalizers", "log", "eviction"}
	// coreWrites are the resources of the group "" that may be written. Endpoints are not among them: a Service leads to
	// whatever address stands in them.
	coreWrites = []string{"pods", "services", "configmaps", "events", "replicationcontrollers", "podtemplates"}
	// groupWrites are the groups of Kubernetes that may be written. Those of custom resources may, too. Not among them
	// are rights, admission, certificates, aggregation, definitions and storage.
	groupWrites = []string{"batch", "autoscaling", "policy", "events.k8s.io", "coordination.k8s.io", "networking.k8s.io",
		"authorization.k8s.io", "authentication.k8s.io"}
	// appsWrites are those of the group "apps". Of a StatefulSet the controller keeps a list as long as its replicas say, and ends
	// for want of memory.
	appsWrites = []string{"deployments", "replicasets", "controllerrevisions"}
	// addresses are resources that could make others' addresses those of a Service.
	addresses = []string{"servicecidrs", "ipaddresses"}
	// kept are namespaces in which nothing may be written.
	kept = []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage", "lab-system"}
)

// AdmissionRule is the [Rule] for a learner's program that nobody trusts. It keeps the program to its own cluster.
//
// Whoever may do everything in a cluster can leave it: an API server calls webhooks, and passes on requests to
// addresses that stand in objects; a privileged Pod on a kind node is as good as root on the machine. So what a program
// asks of the API server is restricted to what an operator needs, whatever its rights are, and what runs in
// Pods to the operand ([InstallPodPolicy]).
func AdmissionRule(req *http.Request, info *request.RequestInfo) string {
	if why := malformed(req); why != "" {
		return why
	}
	if !info.IsResourceRequest {
		if info.Verb == "get" {
			return ""
		}
		return "a learner's program may only read what is no resource"
	}
	switch {
	case !slices.Contains(subresources, info.Subresource):
		return fmt.Sprintf("a learner's program may not use %s/%s", info.Resource, info.Subresource)
	case info.APIGroup == "" && info.Resource == "secrets": // tokens that the API server accepts are among them
		return "a learner's program may not use secrets"
	case info.APIGroup == "" && info.Resource == "componentstatuses": // whoever asks for these has the API server call its machine
		return "a learner's program may not use componentstatuses"
	case slices.Contains(reads, info.Verb):
		return ""
	case !slices.Contains(writes, info.Verb):
		return fmt.Sprintf("a learner's program may not %s", info.Verb)
	case slices.Contains(kept, info.Namespace):
		return fmt.Sprintf("a learner's program may not write in %s", info.Namespace)
	case !writable(info):
		return fmt.Sprintf("a learner's program may not %s %s", info.Verb, strings.TrimRight(info.Resource+"."+info.APIGroup, "."))
	}
	return ""
}

// malformed says what is wrong with the form of a request: what two programs could read differently, changes who asks, or
// turns the connection into another one.
func malformed(req *http.Request) string {
	clean := path.Clean(req.URL.Path)
	if req.URL.RawPath != "" || req.URL.Path != clean && req.URL.Path != clean+"/" {
		return "a learner's program may not write paths in another way than they are"
	}
	for name := range req.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return "a learner's program may not impersonate others"
		}
	}
	if req.Header.Get("Upgrade") != "" || req.Method == http.MethodConnect {
		return "a learner's program may not change the protocol"
	}
	return ""
}

// writable says whether an operator may have to write such objects. Their status is that of whoever runs them: it has
// addresses that the checks connect to.
func writable(info *request.RequestInfo) bool {
	group := info.APIGroup
	switch {
	case slices.Contains(addresses, path.Join(info.Resource, info.Subresource)):
		return false
	case group == "":
		return slices.Contains(coreWrites, info.Resource) && info.Subresource != "status"
	case group == "apps":
		return slices.Contains(appsWrites, info.Resource) && info.Subresource != "status"
	case slices.Contains(groupWrites, group):
		return info.Subresource != "status"
	}
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}
