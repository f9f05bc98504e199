package env

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// As is a client with the rights of another user, such as system:serviceaccount:namespace:name. The API server adds the groups
// that such an account is in.
func As(user string) (client.Client, error) {
	config := adminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: current.admin.Scheme(), Mapper: current.admin.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", user, err)
	}
	return c, nil
}
