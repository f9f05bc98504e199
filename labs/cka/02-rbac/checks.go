package rbac

import (
	"context"
	"fmt"
	"strings"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"reads": reads, "scales": scales, "no-more": noMore}}
}

const memcacheds = "memcacheds.cache.example.com"

// has wants all verbs, and says which there are.
func has(ctx context.Context, r *practice.Reader, resource, cause string, verbs ...string) error {
	var granted, denied []string
	for _, verb := range verbs {
		ok, err := r.Allowed(ctx, r.Values["team"]+"/"+r.Values["account"], verb, resource, r.Values["namespace"])
		if err != nil {
			return err
		}
		if ok {
			granted = append(granted, verb)
		} else {
			denied = append(denied, verb)
		}
	}
	expected := fmt.Sprintf("%s of %s may be done in %s", strings.Join(verbs, ", "), resource, r.Values["namespace"])
	switch {
	case len(denied) == 0:
		return nil
	case len(granted) > 0:
		return finding.New("some-verbs", expected, "%s is allowed, %s is not", strings.Join(granted, ", "), strings.Join(denied, ", "))
	}
	return finding.New(cause, expected, "none of it is allowed")
}

func reads(ctx context.Context, r *practice.Reader) error {
	return has(ctx, r, memcacheds, "cannot-read", "get", "list", "watch")
}

func scales(ctx context.Context, r *practice.Reader) error {
	return has(ctx, r, memcacheds+"/scale", "no-scale", "get", "update", "patch")
}

func noMore(ctx context.Context, r *practice.Reader) error {
	team, account, namespace := r.Values["team"], r.Values["account"], r.Values["namespace"]
	for _, no := range []struct{ cause, account, namespace, verb, resource string }{
		{"writes", account, namespace, "create", memcacheds},
		{"writes", account, namespace, "update", memcacheds},
		{"writes", account, namespace, "patch", memcacheds},
		{"writes", account, namespace, "delete", memcacheds},
		{"writes", account, namespace, "update", memcacheds + "/status"},
		{"writes", account, namespace, "delete", memcacheds + "/scale"},
		{"other-namespace", account, team, "get", memcacheds},
		{"other-namespace", account, "", "list", memcacheds},
		{"other-namespace", account, team, "patch", memcacheds + "/scale"},
		{"other-resource", account, namespace, "get", "secrets"},
		{"other-resource", account, namespace, "list", "pods"},
		{"other-resource", account, namespace, "get", memcacheds + "/status"},
		{"other-resource", account, namespace, "patch", "deployments.apps/scale"},
		{"other-account", "default", namespace, "get", memcacheds},
		{"other-account", "default", namespace, "patch", memcacheds + "/scale"},
	} {
		ok, err := r.Allowed(ctx, team+"/"+no.account, no.verb, no.resource, no.namespace)
		if err != nil {
			return err
		}
		if ok {
			where := "in " + no.namespace
			if no.namespace == "" {
				where = "in all namespaces"
			}
			return finding.New(no.cause, "only the rights of the question", "the ServiceAccount %s/%s may %s %s %s",
				team, no.account, no.verb, no.resource, where)
		}
	}
	return nil
}
