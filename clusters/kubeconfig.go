package clusters

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

var (
	// ErrNoKubeconfig says that something is no kubeconfig at all. What the parser says about it is not repeated: it may
	// quote keys.
	ErrNoKubeconfig = errors.New("it is no kubeconfig")
	// ErrNoContext says that the current context of a kubeconfig does not lead to its cluster and its user.
	ErrNoContext = errors.New("its current context does not name its cluster and its user")
	// ErrNeedsMore says that a kubeconfig is of use only with other files or programs of some machine.
	ErrNeedsMore = errors.New("it needs other files or programs of the machine that it is from")
	// ErrOpen says that a kubeconfig lets others read what passes, or answer in the cluster's place.
	ErrOpen = errors.New("its connection is not secure: no https, a proxy, or a certificate that is not checked")
)

// CheckKubeconfig says what is wrong with a kubeconfig that goes from one machine to another, nil when it opens one
// cluster, as one user, by itself. One that names a program would have it run by whoever uses the file.
func CheckKubeconfig(data []byte) error {
	config, err := clientcmd.Load(data)
	if err != nil {
		return ErrNoKubeconfig
	}
	if len(config.Clusters) != 1 || len(config.AuthInfos) != 1 {
		return fmt.Errorf("it knows %d clusters and %d users, and should know one of each", len(config.Clusters), len(config.AuthInfos))
	}
	// Without a context that names both, client-go uses the account of the Pod that it runs in.
	at := config.Contexts[config.CurrentContext]
	if at == nil || config.Clusters[at.Cluster] == nil || config.AuthInfos[at.AuthInfo] == nil {
		return ErrNoContext
	}
	for _, c := range config.Clusters {
		switch {
		case c.CertificateAuthority != "":
			return ErrNeedsMore
		case !strings.HasPrefix(c.Server, "https://") || c.InsecureSkipTLSVerify || c.ProxyURL != "":
			return ErrOpen
		}
	}
	for _, u := range config.AuthInfos {
		if u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "" || u.Exec != nil || u.AuthProvider != nil {
			return ErrNeedsMore
		}
	}
	return nil
}
