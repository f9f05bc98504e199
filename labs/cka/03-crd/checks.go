// Package crd is task 3 of the CKA practice: write a CustomResourceDefinition from a description.
package crd

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task. Its set-up has nothing to do: the kind is not there.
func Program() practice.Program {
	return practice.Program{
		Setup:  func(context.Context, *practice.Setup) error { return nil },
		Checks: map[string]practice.Check{"served": served, "keeps": keeps, "refuses": refuses, "defaults": defaults, "status": status},
	}
}

func definition(ctx context.Context, r *practice.Reader) (crd apiextensionsv1.CustomResourceDefinition, v1 int, err error) {
	err = r.Get(ctx, client.ObjectKey{Name: "cachebackups." + r.Values["group"]}, &crd)
	v1 = slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1" && v.Served })
	return crd, v1, err
}

func served(ctx context.Context, r *practice.Reader) error {
	crd, v1, err := definition(ctx, r)
	names := crd.Spec.Names
	switch {
	case apierrors.IsNotFound(err):
		return finding.New("missing", "a CustomResourceDefinition cachebackups."+r.Values["group"], "there is none")
	case err != nil:
		return err
	case crd.Spec.Scope != apiextensionsv1.NamespaceScoped:
		return finding.New("wrong-scope", "objects that belong to namespaces", "spec.scope is %s", crd.Spec.Scope)
	case names.Kind != "CacheBackup" || !slices.Contains(names.ShortNames, "cb"):
		return finding.New("wrong-names", "the kind CacheBackup with the short name cb", "kind %s, short names %v", names.Kind, names.ShortNames)
	case v1 < 0:
		return finding.New("wrong-version", "the version v1, which is served", "spec.versions has no such version")
	}
	return r.Eventually(ctx, func(ctx context.Context) error {
		crd, _, err := definition(ctx, r)
		if err == nil && apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established) {
			_, err = create(ctx, r, map[string]any{"schedule": "0 3 * * *"})
			if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				return nil
			}
		}
		return finding.New("not-established", "the API server serves CacheBackups", "it does not")
	})
}

// create tries to create a CacheBackup with that spec; nil is none. It returns what would have been stored.
func create(ctx context.Context, r *practice.Reader, spec any) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.Values["group"] + "/v1", "kind": "CacheBackup", "metadata": map[string]any{"name": "probe", "namespace": "default"},
	}}
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o, r.Create(ctx, o)
}

// number reads a drawn value.
func number(r *practice.Reader, name string) int64 {
	n, _ := strconv.ParseInt(r.Values[name], 10, 64) // task.yaml has numbers only
	return n
}

// keepsIn wants an object of that spec to be accepted, and to be stored with that value of keep.
func keepsIn(ctx context.Context, r *practice.Reader, spec map[string]any, keep int64, cause string) error {
	o, err := create(ctx, r, spec)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return finding.New("refused", fmt.Sprintf("a CacheBackup with the spec %v is accepted", spec), "%v", err)
	}
	got, _, _ := unstructured.NestedMap(o.Object, "spec")
	if err == nil && (got["keep"] != keep || got["schedule"] != spec["schedule"]) {
		return finding.New(cause, fmt.Sprintf("the spec %v is stored with keep %d", spec, keep), "the spec is stored as %v", got)
	}
	return err
}

func keeps(ctx context.Context, r *practice.Reader) error {
	for _, keep := range []int64{1, number(r, "most")} {
		if err := keepsIn(ctx, r, map[string]any{"schedule": "0 3 * * *", "keep": keep}, keep, "dropped"); err != nil {
			return err
		}
	}
	return nil
}

func refuses(ctx context.Context, r *practice.Reader) error {
	type spec = map[string]any
	for _, wrong := range []struct {
		cause, what string
		spec        any
	}{
		{"not-required", "a spec without a schedule", spec{"keep": int64(1)}},
		{"not-required", "no spec", nil},
		{"no-bounds", "keep 0", spec{"schedule": "x", "keep": int64(0)}},
		{"no-bounds", fmt.Sprintf("keep %d", number(r, "most")+1), spec{"schedule": "x", "keep": number(r, "most") + 1}},
		{"wrong-type", "keep 1.5", spec{"schedule": "x", "keep": 1.5}},
		{"wrong-type", `keep "1"`, spec{"schedule": "x", "keep": "1"}},
		{"wrong-type", "schedule 3", spec{"schedule": int64(3)}},
	} {
		_, err := create(ctx, r, wrong.spec)
		if err == nil {
			return finding.New(wrong.cause, "a CacheBackup with "+wrong.what+" is refused", "it is accepted")
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	return nil
}

func defaults(ctx context.Context, r *practice.Reader) error {
	return keepsIn(ctx, r, map[string]any{"schedule": "0 3 * * *"}, number(r, "default"), "no-default")
}

// status reads the definition: without an object whose status could be written, a dry run cannot tell.
func status(ctx context.Context, r *practice.Reader) error {
	crd, v1, err := definition(ctx, r)
	if err != nil {
		return err
	}
	version := crd.Spec.Versions[v1]
	if version.Subresources == nil || version.Subresources.Status == nil {
		return finding.New("no-subresource", "the version v1 has the subresource status", "it has none")
	}
	if version.Schema.OpenAPIV3Schema.Properties["status"].Properties["lastBackup"].Type != "string" {
		return finding.New("status-dropped", "a string status.lastBackup", "the schema of v1 has none")
	}
	return nil
}
