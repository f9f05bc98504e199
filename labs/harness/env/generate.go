package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/once"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
)

// causeDefinitionRejected is the cause when the API server does not take the definition that our controller-gen makes of the
// learner's types.
const causeDefinitionRejected = "crd-rejected"

// Generator is this course's controller-gen at work on a copy of the workspace. All processes of a run
// share its results.
func Generator(ctx context.Context) (generate.Generator, error) {
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return generate.Generator{}, err
	}
	c := current.config
	return generate.Generator{Binary: c.ControllerGen, Workspace: c.Workspace, Scratch: c.Scratch, Env: env}, nil
}

// derived is the definition made from the learner's types, or what is wrong with them.
type derived struct {
	Definition *apiextensionsv1.CustomResourceDefinition `json:"definition,omitempty"`
	Finding    *finding.Finding                          `json:"finding,omitempty"`
}

// InstallDerivedCRD gives the API server the definition that our controller-gen makes of the learner's
// types, once per run, in a group of the run's own: it stands beside the manifest of the workspace and
// no manager watches it. A finding says why there is none: the cause [generate.CauseFailed] or
// "crd-rejected".
func InstallDerivedCRD(ctx context.Context) (*crd.Resource, error) {
	data, err := once.Do(ctx, current.config.Scratch, "derived-crd", func() ([]byte, error) {
		definition, err := deriveCRD(ctx)
		if f := (*finding.Finding)(nil); errors.As(err, &f) {
			return json.Marshal(derived{Finding: f.Bounded()})
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(derived{Definition: definition})
	})
	if err != nil {
		return nil, err
	}
	var d derived
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read derived definition: %w", err)
	}
	if d.Finding != nil {
		return nil, d.Finding
	}
	return crd.New(adminConfig(), d.Definition)
}

func deriveCRD(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	generator, err := Generator(ctx)
	if err != nil {
		return nil, err
	}
	made, err := generator.CustomResources(ctx)
	if err != nil {
		return nil, err
	}
	definitions := generate.Definitions(made, suite.Kind)
	if len(definitions) == 0 {
		return nil, finding.New(generate.CauseFailed, "a definition of the kind "+suite.Kind, "controller-gen finds no such kind in your types; is the root marker still above the struct?")
	}
	if len(definitions) > 1 {
		return nil, finding.New(finding.CauseOther, "one kind "+suite.Kind+", of one group", "%s and %s", definitions[0].Name(), definitions[1].Name())
	}
	definition, err := definitions[0].Definition()
	if err != nil {
		return nil, err
	}
	if err := oneVersion(definition); err != nil {
		return nil, err
	}
	definition = crd.Regroup(definition, derivedGroup())
	definition.Spec.Scope = apiextensionsv1.NamespaceScoped // lab 3's business; checks have a namespace each
	if err := crd.Install(ctx, current.admin, definition); err != nil {
		return nil, rejected(ctx, err)
	}
	resource, err := crd.New(adminConfig(), definition)
	if err != nil {
		return nil, err
	}
	return definition, resource.AwaitServed(ctx)
}

// derivedGroup is a group that only this run uses.
func derivedGroup() string {
	h := fnv.New32a()
	fmt.Fprint(h, current.config.Seed, current.config.Scratch)
	return fmt.Sprintf("types-%08x.example.com", h.Sum32())
}

// rejected turns the API server's answer to a definition into a finding, and leaves other errors alone.
func rejected(ctx context.Context, err error) error {
	if refusal, ok := crd.Refused(err); ok {
		return finding.New(causeDefinitionRejected, "a definition that the API server takes", "%s", refusal.Text)
	}
	return TooMuchWork(ctx, causeDefinitionRejected, err)
}

// LearnersResource is the resource of the manifest in the workspace, as the API server knows it, in
// whatever group the learner put it. Without a manifest, or when the API server refused it, the error is
// a finding with the cause [suite.CauseNoManifest] or [suite.CauseRefused].
func LearnersResource(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, *crd.Resource, error) {
	definition, err := definition()
	if err != nil {
		return nil, nil, err
	}
	if definition.Name == suite.CRDName {
		if err := learnersCRD(); err != nil {
			return nil, nil, err
		}
	} else if err := installStray(ctx, definition); err != nil {
		return nil, nil, err
	}
	definition = definition.DeepCopy()
	if err := current.admin.Get(ctx, client.ObjectKey{Name: definition.Name}, definition); err != nil {
		return nil, nil, fmt.Errorf("get definition %s: %w", definition.Name, err)
	}
	resource, err := crd.New(adminConfig(), definition)
	return definition, resource, err
}

// installStray installs a definition that stands under another name than the lesson asks for: what else
// is right or wrong about it is judged all the same.
func installStray(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	_, err := once.Do(ctx, current.config.Scratch, "stray-crd", func() ([]byte, error) {
		return nil, crd.Install(ctx, current.admin, definition)
	})
	if err == nil {
		return nil
	}
	text := err.Error()
	if refusal, ok := crd.Refused(err); ok {
		text = refusal.Text
	}
	return finding.New(suite.CauseRefused, "the API server takes the manifest in "+suite.ManifestDir, "%s", text)
}

// Manifests are the definitions that the workspace keeps in [suite.ManifestDir]. Without one of [suite.Kind] the error is a
// finding with the cause [suite.CauseNoManifest].
func Manifests() ([]generate.Manifest, error) {
	all, err := generate.ReadManifests(filepath.Join(current.config.Workspace, filepath.FromSlash(suite.ManifestDir)))
	if err != nil {
		return nil, finding.New(suite.CauseRefused, "YAML in "+suite.ManifestDir, "%v", err)
	}
	var definitions []generate.Manifest
	for _, m := range all {
		if m.Kind() == "CustomResourceDefinition" {
			definitions = append(definitions, m)
		}
	}
	if len(generate.Definitions(definitions, suite.Kind)) == 0 {
		return nil, finding.New(suite.CauseNoManifest, "a definition of "+suite.Kind+" in "+suite.ManifestDir,
			"%s; `make manifests` in the workspace writes it", found(definitions))
	}
	return definitions, nil
}

// manifest is the workspace's definition of [suite.Kind]; the one with the promised name where there are several.
func manifest() (generate.Manifest, error) {
	all, err := Manifests()
	if err != nil {
		return generate.Manifest{}, err
	}
	definitions := generate.Definitions(all, suite.Kind)
	for _, m := range definitions {
		if m.Name() == suite.CRDName {
			return m, nil
		}
	}
	return definitions[0], nil
}

// definition reads the [manifest].
func definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	m, err := manifest()
	if err != nil {
		return nil, err
	}
	definition, err := m.Definition()
	if err != nil {
		return nil, finding.New(suite.CauseRefused, "a CustomResourceDefinition in "+suite.ManifestDir+"/"+m.File, "%v", err)
	}
	return definition, oneVersion(definition)
}

// oneVersion is a finding for a definition with more. Each has bounds, defaults and subresources of its own, and the checks ask for
// one of them.
func oneVersion(definition *apiextensionsv1.CustomResourceDefinition) error {
	var names []string
	for _, v := range definition.Spec.Versions {
		names = append(names, v.Name)
	}
	if len(names) > 1 {
		return finding.New(finding.CauseOther, "a definition with one version, v1alpha1", "%s", strings.Join(names, ", "))
	}
	return nil
}

func found(manifests []generate.Manifest) string {
	if len(manifests) == 0 {
		return "none"
	}
	var names []string
	for _, m := range manifests {
		names = append(names, m.File)
	}
	return "only " + strings.Join(names, ", ")
}
